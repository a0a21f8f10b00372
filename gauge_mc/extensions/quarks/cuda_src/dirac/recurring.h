// A step of a recurrence: a older + scale (gamma_5 psi + shift u) + c constant. What is multiplied by 0 is not read, so that
// it need not be a number. The result may take the place of the older vectors.
#pragma once

#include "dirac/spinors.h"

struct Recurring {
    struct Addends {
        Spinors older, constant;
        double a, scale, shift, c;
    };
    static constexpr bool IN_TWO = false;
    static INLINE void complete(const Addends&, const Geometry&, const Site&, bool, int, int) {}
    template <class Load>
    static INLINE void finish(const Addends& added, const Geometry& g, const Site& site, int vector, const Load& load_u,
                              Spinor& psi) {
        reflect(psi);
        const scalar scale = (scalar)added.scale;
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) psi.c[i] = scale * psi.c[i];
        auto add = [&](const Spinor& v, double factor) {
            const scalar f = (scalar)factor;
            UNROLL for (int i = 0; i < SPINOR_REALS; i++) psi.c[i] = psi.c[i] + f * v.c[i];
        };
        add(load_u(), added.scale * added.shift);
        if (added.a != 0) add(load_spinor(added.older, g, site, vector), added.a);
        if (added.c != 0) add(load_spinor(added.constant, g, site, vector), added.c);
    }
};
