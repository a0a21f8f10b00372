// A hermitian term of the part of a Dirac operator that is diagonal in the sites, and commutes with gamma_5. It is selected
// by the compiler's command line:
//   TERM_HEADER  the header that declares it
//   TERM         its class
//
// It declares
//   Coefficients   the numbers on which it depends
//   add            h += the term at a site, for both chiralities, given the links
#pragma once

#include "dirac/block.h"
#include "group/group.h"
#include TERM_HEADER
