// Sites: their position in memory, and the part of the lattice on which a launch works.
//
// A field consists of time slices, one after the other. A slice consists of the even sites, followed
// by the odd sites. A *slot* is one site (GPU), or one site of each lane's sub-lattice (CPU). The slots of
// one parity are numbered in the order z, y, x, with x fastest.
//
// A *slab* is a number of consecutive slices on one device. It has a *halo*: copies of slices of the
// neighbouring slabs, stored after its own slices. First come the slices that follow the slab in time,
// then the one that precedes it. So a step back from the first slice leads to the last one in memory,
// as if the slices in memory were periodic.
//
// Instead of a slab with a halo, a field may consist of several whole lattices, its *replicas*, one after
// the other. Launches number the slices of all replicas consecutively.
#pragma once

#include "arch/arch.h"

// Division n / divisor for 0 <= n < 2^31 by means of a multiplication (Granlund and Montgomery, PLDI
// 1994, figure 4.1).
struct Divisor {
    unsigned divisor, multiplier, shift;
    INLINE int quotient(int n) const {
        const unsigned high = (unsigned)(((unsigned long long)(unsigned)n * multiplier) >> 32);
        return (int)((high + (unsigned)n) >> shift);
    }
};

struct Geometry {
    int extent[3];              // extents of a lane's sub-lattice
    int full[4];                // extents of the lattice
    int slices;                 // time slices of a replica in memory, halo included
    int first;                  // t of the first slice in memory, 0 <= first < full[3]
    int crossing[3];            // 3^d if the lattice is divided into lanes along d, else 0
    Divisor half_x, y;          // extent[0] / 2 and extent[1]
    Divisor period;             // slices
    int slots;                  // number of slots of one parity in a slice
    const void* lane_orders;    // [27][LANES]: the lane of a neighbour across sub-lattice edges
    const unsigned* lane_site;  // [LANES]: number of the first site of a sub-lattice
    double sum_shift;           // see `summand`
};

// The sites on which a launch works: `slices` time slices t_begin, t_begin + t_step, ... of all replicas and
// one parity, or both (parity = 2). On a CPU the work may be restricted to a range of slots of every slice.
// Updates may be restricted to the sites of one colour (update/colours.h), with launches on every rows_y-th row along y
// and every rows_z-th along z only, whose slots stand for these sites.
struct Work {
    int t_begin, t_step, slices, parity, mu;
    int first_slot, slots;  // slots = 0: all
    int colour, colours;
    int rows_y, rows_z;
};

// How the work on a site is shared among threads of a GPU: `threads` of a block, which load the same links at about
// the same time, and `blocks` that follow each other. On a CPU both are 1.
struct Shares {
    int threads, blocks;
};

// The middle row of Geometry::lane_orders, for a neighbour in the same sub-lattice. Crossing an edge
// forwards along d adds 3^d to the row, and crossing it backwards subtracts 3^d.
constexpr int NO_CROSSING = 13;

// The distance to another place in a field: a number of packets, and the sub-lattice edges that are
// crossed (in units of 3^d). Packets are counted modulo the range of the type, so that steps back are
// possible.
struct Offset {
    packet_index packets;
    int crossing;
    INLINE Offset operator+(const Offset& other) const {
        return {packets + other.packets, crossing + other.crossing};
    }
};

// t is the number of the slice among those of its replica.
struct Site {
    int x, y, z, t, parity, slot, replica;
};

// Return the lattice's t of slice t of a replica.
INLINE int lattice_t(const Geometry& g, int t) {
    const int there = g.first + t;
    return there >= g.full[3] ? there - g.full[3] : there;
}

// The largest absolute value of a site that STRICT sums take.
constexpr int LARGEST_SUMMAND = 1024;

// Return what a value of a site adds to a sum over a slice. With STRICT it is rounded to a multiple of a unit, which is so
// large that sums of a slice's values are exact in double precision, whatever their order: sum_shift is 1.5 * 2^52 units
// (gauge_mc/domain/slab.py). A value above LARGEST_SUMMAND, for which that is not so, becomes NaN.
INLINE double summand(const Geometry& g, double value) {
#if STRICT
    const bool small = value <= LARGEST_SUMMAND && value >= -LARGEST_SUMMAND;
    return small ? (value + g.sum_shift) - g.sum_shift : (value - value) / (value - value);
#else
    (void)g;
    return value;
#endif
}

// Wide sums are for values that may be of any size. With STRICT every value is split into as many parts, each a multiple of
// a unit of its own, so that the sums of the parts are exact; gauge_mc/fields/sums.py adds these.
constexpr int LEVELS = 6;
constexpr int PARTS_PER_VALUE = STRICT ? LEVELS : 1;

// The first unit is WIDER times that of `summand`, and so is the largest value that is not taken as NaN. Another unit is
// 2^-54 times the number of sites of a slice, rounded up to a power of two, times the one before: at most half of that is
// left of a value.
constexpr double WIDER = 0x1p50;

struct Level {
    double shift, narrower;  // 1.5 * 2^52 units, and the ratio of the next unit to this one
};
INLINE Level first_level(const Geometry& g) { return {g.sum_shift * WIDER, g.sum_shift / 1.5 * 0x1p-63}; }

// Return numbers in double precision, or NaN where they are too large.
template <class D> INLINE D within_levels(const Geometry& g, const D& value) {
    const double zero = g.sum_shift - g.sum_shift;
    return where_below(value, LARGEST_SUMMAND * WIDER, zero / zero);
}
// Return the part of numbers at this level, of which the rest is left for the next one.
template <class D> INLINE D take_part(const Level& level, D& rest) {
    const D part = (rest + level.shift) - level.shift;
    rest = rest - part;
    return part;
}
INLINE Level next_level(const Level& level) { return {level.shift * level.narrower, level.narrower}; }

// Return the number of a site's slice among those of all replicas.
INLINE int slice_in_memory(const Geometry& g, const Site& s) { return s.replica * g.slices + s.t; }

// Return the site of a slot of a slice, which is numbered among those of all replicas.
INLINE Site locate(const Geometry& g, int slice, int parity, int slot) {
    const int replica = g.period.quotient(slice), t = slice - replica * g.slices;
    const int row = g.half_x.quotient(slot);
    const int z = g.y.quotient(row);
    const int y = row - z * (int)g.y.divisor;
    const int x = 2 * (slot - row * (int)g.half_x.divisor) + ((parity + y + z + lattice_t(g, t)) & 1);
    return {x, y, z, t, parity, slot, replica};
}

// Return the number of a site in its time slice, (z Y + y) X + x, on a lattice with these extents.
INLINE unsigned site_in_slice(const int (&full)[4], const int (&at)[3]) {
    return ((unsigned)at[2] * full[1] + at[1]) * full[0] + at[0];
}

// Return the number of a site in the whole lattice, ((t Z + z) Y + y) X + x, for every lane.
INLINE word site_number(const Geometry& g, const Site& s) {
    const unsigned first = (((unsigned)lattice_t(g, s.t) * g.full[2] + s.z) * g.full[1] + s.y) * g.full[0] + s.x;
    return lane_numbers(first, g.lane_site);
}
