// The last step of a hop, which makes the result from psi; selected by the compiler's command line:
//   REFLECTION_HEADER  the header that declares it
//   REFLECTION         its class
//
// It declares
//   Addends  the vectors that the step adds, with their factors
//   finish   psi -> the result at a site, given a function that loads u of the hop
//   IN_TWO   whether complete(), which begins when all vectors of a site have their results, works on these; threads of
//            a block without a site call it with here = false
#pragma once

#include "dirac/spinors.h"

// gamma_5 psi.
INLINE void reflect(Spinor& psi) {
    UNROLL for (int spin = 2; spin < 4; spin++) UNROLL for (int colour = 0; colour < GROUP::N; colour++) {
        const int at = component(spin, colour);
        psi.c[at] = -psi.c[at], psi.c[at + 1] = -psi.c[at + 1];
    }
}

#include REFLECTION_HEADER
