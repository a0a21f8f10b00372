// The result of a hop, multiplied by gamma_5.
#pragma once

#include "dirac/spinors.h"

struct Reflected {
    struct Addends {
        int none;
    };
    static constexpr bool IN_TWO = false;
    static INLINE void complete(const Addends&, const Geometry&, const Site&, bool, int, int) {}
    template <class Load>
    static INLINE void finish(const Addends&, const Geometry&, const Site&, int, const Load&, Spinor& psi) {
        reflect(psi);
    }
};
