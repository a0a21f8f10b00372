// The action, selected by the compiler's command line:
//   ACTION_HEADER  the header that declares it
//   ACTION         its class
//
// An action declares
//   Coefficients   the parameters of the action, set by its Python module
//   staples<G, UNROLLED>(links, geometry, site, mu, coefficients)
//                  the matrix s such that the action depends on the link as
//                  -weight Re Tr (U s^dagger). With UNROLLED the code loads as much as possible
//                  at once
//   weight         the factor in front of Re Tr (U s^dagger); beta/N for the Wilson action
#pragma once

#include ACTION_HEADER
