// The action, selected by the compiler's command line:
//   ACTION_HEADER  the header that declares it
//   ACTION         its class
//
// An action declares
//   Coefficients   the numbers that it depends on, filled by its Python module
//   staples<G, UNROLLED>(links, geometry, site, mu, coefficients)
//                  the matrix s for which the link's part of the action is -weight/N Re Tr (U s^dagger);
//                  UNROLLED asks for code that loads as much as it can at once
//   weight         the factor weight/N, beta/N for the Wilson action
#pragma once

#include ACTION_HEADER
