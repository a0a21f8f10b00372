// A = 1 + shift, as for another mass.
#pragma once

#include "dirac/spinors.h"

struct Shifted {
    struct Terms {
        double shift;
    };
    static INLINE void multiply(double factor, Spinor& psi) {
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) psi.c[i] = (scalar)factor * psi.c[i];
    }
    static INLINE void apply(const Terms& a, const Geometry&, const Site&, scalar, Spinor& psi) {
        multiply(1 + a.shift, psi);
    }
    static INLINE void apply_inverse(const Terms& a, const Geometry&, const Site&, scalar, Spinor& psi) {
        multiply(1 / (1 + a.shift), psi);
    }
};
