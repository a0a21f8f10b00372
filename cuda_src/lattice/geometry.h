// Sites: where they are in memory, and which part of the lattice a launch works on.
//
// A field holds time slices one after the other, and in a slice first the even and then the odd
// sites. A *slot* is one site (GPU), or one site of each lane's sub-lattice (CPU). Slots number the
// sites of one parity in the order z, y, x, with x fastest.
//
// A slab, which is a part of the lattice, has a *halo*: copies of the neighbouring slabs' slices,
// stored behind its own slices. First come those that follow the slab in time, then the one that
// precedes it. So a step back from the first slice leads to the last one in memory, as if the
// lattice were periodic there.
#pragma once

#include "arch/arch.h"

// Division n / divisor for 0 <= n < 2^31 by a multiplication (Granlund and Montgomery, PLDI 1994,
// figure 4.1).
struct Divisor {
    unsigned divisor, multiplier, shift;
    INLINE int quotient(int n) const {
        const unsigned high = (unsigned)(((unsigned long long)(unsigned)n * multiplier) >> 32);
        return (int)((high + (unsigned)n) >> shift);
    }
};

struct Geometry {
    int extent[3];              // of a lane's sub-lattice
    int full[4];                // of the lattice
    int slices;                 // time slices in memory, halo included
    int first;                  // the lattice's t of the first slice in memory, 0 <= first < full[3]
    int crossing[3];            // 3^d if the lattice is divided into lanes along d, else 0
    Divisor half_x, y;          // extent[0] / 2 and extent[1]
    int slots;                  // in one parity of a slice
    const void* lane_orders;    // [27][LANES]: the lane of a neighbour across sub-lattice edges
    const unsigned* lane_site;  // [LANES]: number of a sub-lattice's first site
};

// What one launch works on: `slices` time slices t_begin, t_begin + t_step, ... of one parity, or of
// both (parity = 2). On a CPU it may be only a range of slots of every slice.
struct Work {
    int t_begin, t_step, slices, parity, mu;
    int first_slot, slots;  // slots = 0: all
};

// The number of the middle row of Geometry::lane_orders, for a neighbour across no edge. Crossing an
// edge along d forwards adds 3^d, backwards subtracts it.
constexpr int NO_CROSSING = 13;

// How far away something is: in packets of the field, and across which sub-lattice edges. Packets are
// counted modulo the range of the type, so that steps back are possible.
struct Offset {
    packet_index packets;
    int crossing;
    INLINE Offset operator+(const Offset& other) const {
        return {packets + other.packets, crossing + other.crossing};
    }
};

struct Site {
    int x, y, z, t, parity, slot;
};

// The lattice's t of a slice in memory.
INLINE int lattice_t(const Geometry& g, int t) {
    const int there = g.first + t;
    return there >= g.full[3] ? there - g.full[3] : there;
}

INLINE Site locate(const Geometry& g, int t, int parity, int slot) {
    const int row = g.half_x.quotient(slot);
    const int z = g.y.quotient(row);
    const int y = row - z * (int)g.y.divisor;
    const int x = 2 * (slot - row * (int)g.half_x.divisor) + ((parity + y + z + lattice_t(g, t)) & 1);
    return {x, y, z, t, parity, slot};
}

// The number of a site in the whole lattice, ((t Z + z) Y + y) X + x, for every lane.
INLINE word site_number(const Geometry& g, const Site& s) {
    const unsigned first = (((unsigned)lattice_t(g, s.t) * g.full[2] + s.z) * g.full[1] + s.y) * g.full[0] + s.x;
    return lane_numbers(first, g.lane_site);
}
