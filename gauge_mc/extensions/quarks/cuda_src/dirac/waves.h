// Complex numbers by which the terms of a sum over a time slice are multiplied, such as plane waves: an array
// [z][y][x][re, im] of doubles in words of 32 bits, or null for 1.
#pragma once

#include "lattice/geometry.h"

INLINE void multiply_by_wave(const unsigned* waves, const Geometry& g, const Site& s, real& re, real& im) {
    if (waves == nullptr) return;
    const word number = lane_numbers(((unsigned)s.z * g.full[1] + s.y) * g.full[0] + s.x, g.lane_site);
    unsigned long long at[LANES];
    for (int lane = 0; lane < LANES; lane++) at[lane] = 4ull * lane_of(number, lane);
    word w[4];
    load_lane_words(waves, at, 4, w);
    const real c = from_double(double_of_bits(w[0], w[1])), d = from_double(double_of_bits(w[2], w[3]));
    const real before = re;
    re = c * before - d * im;
    im = c * im + d * before;
}
