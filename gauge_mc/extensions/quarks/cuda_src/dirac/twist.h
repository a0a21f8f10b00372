// A = 1 + i m gamma_5 with a twisted mass m = 2 kappa mu.
#pragma once

#include "dirac/spinors.h"

// psi -> (a + i b gamma_5) psi.
INLINE void multiply_chiral(scalar a, scalar b, Spinor& psi) {
    UNROLL for (int i = 0; i < SPINOR_REALS; i += 2) {
        const real re = psi.c[i], im = psi.c[i + 1];
        const scalar sign = i / 2 % SPINS < 2 ? b : -b;
        psi.c[i] = a * re - sign * im;
        psi.c[i + 1] = a * im + sign * re;
    }
}

struct Twist {
    struct Terms {
        double mass;
    };
    static INLINE void apply(const Terms& a, const Geometry&, const Site&, scalar s, Spinor& psi) {
        multiply_chiral(1, s * (scalar)a.mass, psi);
    }
    static INLINE void apply_inverse(const Terms& a, const Geometry&, const Site&, scalar s, Spinor& psi) {
        const double norm = 1 / (1 + a.mass * a.mass);
        multiply_chiral((scalar)norm, -s * (scalar)(a.mass * norm), psi);
    }
};
