// Numbers of a field that is stored in another type, and whose slots may have another number of lanes.
#pragma once

#include "dirac/storage.h"

struct Elsewhere {
    int number_bytes;     // 8 or 4: reals; 2: fixed-point numbers
    int slots, lanes;     // of one parity of a slice
    const int* places;    // [parity on even slices][slot][LANES]: slot * lanes + lane of every site; null if the same
};

INLINE size_t elsewhere_bytes(const Elsewhere& f, int number_bytes) {
    return (size_t)number_bytes * (unsigned)f.slots * (unsigned)f.lanes;
}

// Load C numbers of a site from a block. Those of fixed-point numbers have a unit unless they are between -1 and 1.
template <bool UNIT, int C>
INLINE void load_elsewhere(const Elsewhere& f, const Geometry& g, const Site& s, const char* block, real (&c)[C]) {
    unsigned place[LANES];
    const int first = (((s.parity + lattice_t(g, s.t)) & 1) * g.slots + s.slot) * LANES;
    for (int lane = 0; lane < LANES; lane++)
        place[lane] = f.places ? (unsigned)f.places[first + lane] : (unsigned)(s.slot * LANES + lane);
    if (f.number_bytes == 8) {
        load_numbers_at<double>(block, f.slots, place, f.lanes, c);
    } else if (f.number_bytes == 4) {
        load_numbers_at<float>(block, f.slots, place, f.lanes, c);
    } else {
        load_numbers_at<fixed16>(block, f.slots, place, f.lanes, c);
        real unit[1] = {broadcast(scalar(1.0 / FixedPoint::MOST))};
        if (!UNIT) load_numbers_at<float>(block + elsewhere_bytes(f, 2 * C), f.slots, place, f.lanes, unit);
        UNROLL for (int i = 0; i < C; i++) c[i] = c[i] * unit[0];
    }
}
