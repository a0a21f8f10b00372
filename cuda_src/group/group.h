// The gauge group, selected by the compiler's command line:
//   GROUP_HEADER  the header that declares it
//   GROUP         its class
//
// A group declares
//   N                           number of colours
//   COMPONENTS                  stored reals of a link
//   MATRIX_COMPONENTS           stored reals of a general matrix, which fill whole packets
//   ALGEBRA_COMPONENTS          stored reals of an element of the Lie algebra, which fill whole packets
//   Field, Link, Matrix         links in memory; a link in registers; a sum or average of links
//   Algebra, AlgebraField       an element of the Lie algebra (group/algebra.h), and one per link in memory
//   load, store                 load and store a link
//   zero, one                   the matrices 0 and 1
//   matrix, link                the matrix of a link, and the link of a matrix in the group
//   pack, unpack                convert a matrix to and from its stored reals
//   entries, components         the entries of a matrix from the stored reals of a link, and back, in any precision
//   complete                    the last row of a matrix of the group from the others, in any precision
//   multiply, multiply_adjoint  matrix times link, and matrix times link^dagger
//   adjoint_times               link^dagger times matrix
//   product                     matrix times matrix
//   add, scaled, adjoint        sum, multiple and adjoint of matrices; a factor is one for all lanes, or one per lane
//   add_upper, add_lower        s += a b c^dagger and s += a^dagger b c
//   trace_re, trace_im          real and imaginary part of Tr a
//   overlap                     Re Tr (a b^dagger)
//   plaquette                   Re Tr (a b (d c)^dagger)
//   transformed                 g u h^dagger
//   normalised                  the link next to a matrix whose rows have any norm (Gram-Schmidt)
//   reunitarised                the same for a matrix within rounding errors of the group, without a bias in the norm
//   polar, maximal              projections of a matrix onto the group
//   rotated                     g u, SU(2) subgroup by subgroup; not reunitarised
//   traceless, matrix           the traceless antihermitian part of a matrix, and its matrix
//   overlap                     -Tr (x y) for two elements x and y of the algebra
//   exponential_times           exp(x) u, not reunitarised
#pragma once

#include "lattice/links.h"
#include GROUP_HEADER
