// A = 1.
#pragma once

#include "dirac/spinors.h"

struct Unit {
    struct Terms {
        int none;
    };
    static INLINE void apply(const Terms&, const Geometry&, const Site&, scalar, Spinor&) {}
    static INLINE void apply_inverse(const Terms&, const Geometry&, const Site&, scalar, Spinor&) {}
};
