// A product along the fifth direction of the result of a hop, once all slices of a site are there.
#pragma once

#include "dirac/fifth.h"

struct AlongFifth {
    struct Addends {
        Fifth fifth;
    };
    static constexpr bool IN_TWO = true;
    template <class Load>
    static INLINE void finish(const Addends&, const Geometry&, const Site&, int, const Load&, Spinor&) {}
    static INLINE void complete(const Addends& added, const Geometry& g, const Site& site, bool here, int share, int shares) {
        if constexpr (STORAGE::COUNTS && KEPT) multiply_together(added.fifth, g, site, here, share, shares);
        else if (here) multiply_along_fifth(added.fifth, g, site, share, shares);
    }
};
