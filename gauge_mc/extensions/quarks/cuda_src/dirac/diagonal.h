// The part A of a Dirac operator that is diagonal in the sites, selected by the compiler's command line:
//   DIAGONAL_HEADER  the header that declares it
//   DIAGONAL         its class
//
// It declares
//   Terms                                    what it consists of
//   apply, apply_inverse                     psi -> A psi and psi -> A^{-1} psi at a site, or with A^dagger if s is -1
#pragma once

#include "dirac/spinors.h"
#include DIAGONAL_HEADER
