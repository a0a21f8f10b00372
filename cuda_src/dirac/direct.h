// The result of a hop as it is.
#pragma once

#include "dirac/spinors.h"

struct Direct {
    struct Addends {
        int none;
    };
    template <class Load>
    static INLINE void finish(const Addends&, const Geometry&, const Site&, int, const Load&, Spinor&) {}
};
