// The gauge group, selected by the compiler's command line:
//   GROUP_HEADER  the header that declares it
//   GROUP         its class
//
// A group declares
//   N                           number of colours
//   COMPONENTS                  stored reals of a link
//   MATRIX_COMPONENTS           stored reals of a general matrix, filling whole packets
//   Field, Link, Matrix         links in memory; a link in registers; a sum or average of links
//   load, store                 a link from and to memory
//   zero, one, matrix, link     matrices; the matrix of a link and back (for a matrix in the group)
//   pack, unpack                a matrix to and from its stored reals
//   multiply                    matrix times link or link^dagger, matrix times matrix
//   add, scaled, adjoint        arithmetic of matrices
//   add_upper, add_lower        s += a b c^dagger and s += a^dagger b c
//   trace_re, trace_im, overlap Tr a, and Re Tr (a b^dagger)
//   plaquette                   Re Tr (a b (d c)^dagger)
//   transformed                 g u h^dagger
//   normalised                  a link brought back to the group
//   polar, maximal              projections of a matrix to the group
//   update                      u -> g u, SU(2) subgroup by subgroup
#pragma once

#include "lattice/links.h"
#include GROUP_HEADER
