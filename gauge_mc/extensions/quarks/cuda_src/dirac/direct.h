// The result of a hop as it is.
#pragma once

#include "dirac/spinors.h"

struct Direct {
    struct Addends {
        int none;
    };
    static constexpr bool IN_TWO = false;
    static INLINE void complete(const Addends&, const Geometry&, const Site&, bool, int, int) {}
    template <class Load>
    static INLINE void finish(const Addends&, const Geometry&, const Site&, int, const Load&, Spinor&) {}
};
