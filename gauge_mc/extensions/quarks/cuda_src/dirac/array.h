// Places of spinors in an array [z][y][x][spin][colour][re, im] of doubles, in words of 32 bits.
#pragma once

#include "dirac/spinors.h"

struct ArrayPlaces {
    unsigned long long at[LANES];
    INLINE ArrayPlaces(const Geometry& g, const Site& s) {
        const word number = lane_numbers(((unsigned)s.z * g.full[1] + s.y) * g.full[0] + s.x, g.lane_site);
        for (int lane = 0; lane < LANES; lane++)
            at[lane] = (unsigned long long)lane_of(number, lane) * (2 * SPINOR_REALS);
    }
};

// The place of a real [colour][spin][re, im] of a spinor among those of the array.
INLINE constexpr int place_in_array(int i) {
    return ((i / 2 % SPINS) * GROUP::N + i / (2 * SPINS)) * 2 + i % 2;
}
