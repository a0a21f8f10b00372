// A = H + i m gamma_5 with a twisted mass m = 2 kappa mu, where H is 1 plus the sum of all hermitian terms (dirac/term.h),
// which commute with gamma_5 and are matrices in memory.
#pragma once

#include "dirac/blocks.h"
#include "dirac/twist.h"

struct Hermitian {
    struct Terms {
        const void* blocks;   // H
        const void* inverse;  // (H^2 + m^2)^{-1}, or H^{-1} without a twisted mass
        double mass;
    };
    static INLINE void apply(const Terms& a, const Geometry& g, const Site& site, scalar s, Spinor& psi) {
        add_twist(a, g, site, s, psi);
    }
    // (H + i m gamma_5)^{-1} = (H - i m gamma_5) (H^2 + m^2)^{-1}
    static INLINE void apply_inverse(const Terms& a, const Geometry& g, const Site& site, scalar s, Spinor& psi) {
        multiply_blocks(a.inverse, g, site, psi);
        if (a.mass != 0) add_twist(a, g, site, -s, psi);
    }

private:
    static INLINE void add_twist(const Terms& a, const Geometry& g, const Site& site, scalar s, Spinor& psi) {
        Spinor twisted = psi;
        multiply_chiral(0, s * (scalar)a.mass, twisted);
        multiply_blocks(a.blocks, g, site, psi);
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) psi.c[i] = psi.c[i] + twisted.c[i];
    }
};
