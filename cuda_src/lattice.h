// Where sites, their neighbours and their links are.
//
// A field holds time slices one after the other; a slice is [parity][mu][slot], where a slot is a
// site (GPU) or, one a lane, a site of each of LANES equal sub-lattices (CPU). Slots run over the
// sites of one parity in the order z, y, x, x fastest. A link's components follow each other in
// registers (CPU), or lie apart by `stride` in pieces of 16 bytes (GPU), so that neighbouring
// threads read neighbouring bytes.
//
// A slab of a lattice has copies of its neighbours' slices behind its own: first those that follow
// it, then the one before it, to which a step back from the first slice leads as if around the lattice.
#pragma once

#include "machine.h"

// n / d for 0 <= n < 2^31 (Granlund and Montgomery, PLDI 1994, figure 4.1).
struct Divisor {
    unsigned divisor, multiplier, shift;
    INLINE int quotient(int n) const {
        const unsigned high = (unsigned)(((unsigned long long)(unsigned)n * multiplier) >> 32);
        return (int)((high + (unsigned)n) >> shift);
    }
};

struct Geometry {
    int extent[3];             // of a lane's sub-lattice
    int full[4];               // of the lattice
    int slices;                // time slices stored, copies too
    int first;                 // the lattice's t of the first slice stored, 0 <= first < full[3]
    int turn[3];               // 3^d where the lattice is dealt to lanes along d, else 0
    Divisor half_x, y;         // extent[0] / 2, extent[1]
    int slots;                 // in one parity of a slice
    long long stride;          // slots from one component to the next; at least `slots` (GPU)
    const void* turns;         // [27][LANES]: which lane a neighbour across a sub-lattice's edge is in
    const unsigned* lane_site; // [LANES]: number of a sub-lattice's first site
};

// What one launch works through: so many `slices`, t_begin, t_begin + t_step and so on, of one parity,
// or of both (parity = 2). On a CPU it may be some slots of every slice only.
struct Work {
    int t_begin, t_step, slices, parity, mu;
    int first_slot, slots;  // slots = 0: all
};

// Where neighbours have copies of a slab's first and last slice, if a kernel is to store there, too:
// addresses for the slab's own offsets, or null.
struct Copies {
    void *first, *last;
    int last_t;
};

// Pieces of a field are counted modulo the range of this type, so that steps back are possible.
#if defined(__CUDACC__) && !LARGE
typedef unsigned piece_index;  // address arithmetic in 64 bits costs a GPU twice as much
#else
typedef unsigned long long piece_index;
#endif

// How far away something is: in pieces of the field, and across which sub-lattice edges.
struct Offset {
    piece_index pieces;
    int turn;
    INLINE Offset operator+(const Offset& other) const { return {pieces + other.pieces, turn + other.turn}; }
};

struct Site {
    int x, y, z, t, parity, slot;
};

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

// The number of the site in the whole lattice, ((t Z + z) Y + y) X + x.
INLINE word site_number(const Geometry& g, const Site& s) {
    const unsigned first = (((unsigned)lattice_t(g, s.t) * g.full[2] + s.z) * g.full[1] + s.y) * g.full[0] + s.x;
#ifdef __CUDACC__
    return first;
#else
    word number;
    memcpy(&number, g.lane_site, sizeof number);
    return number + first;
#endif
}

// Links of the group as they are stored: C real components, in P pieces of a slot.
template <int C> struct Links {
#ifdef __CUDACC__
    typedef chunk piece;
    static constexpr int PIECES = C / CHUNK, PER_SLOT = 1;
#else
    typedef real piece;
    static constexpr int PIECES = C, PER_SLOT = C;
#endif
    piece* data;

    // A link's first piece is at place(site) + direction(parity, mu).
    static INLINE piece_index direction(const Geometry& g, int parity, int mu) {
        return (piece_index)((parity * 4 + mu) * PIECES) * (piece_index)g.stride;
    }
    static INLINE piece_index place(const Geometry& g, const Site& s) {
        return (piece_index)(s.t * 8 * PIECES) * (piece_index)g.stride + (piece_index)(s.slot * PER_SLOT);
    }

    // From a site to its neighbour one step along mu.
    static INLINE Offset step(const Geometry& g, const Site& s, int mu, bool forward) {
        int slots, edge = 0;
        if (mu == 0) {
            const int last = g.extent[0] - 1;
            const bool wrap = s.x == (forward ? last : 0);
            const int x = wrap ? (forward ? 0 : last) : s.x + (forward ? 1 : -1);
            slots = (x >> 1) - (s.x >> 1);
            edge = wrap;
        } else if (mu == 3) {
            const bool wrap = s.t == (forward ? g.slices - 1 : 0);
            const int slices = wrap ? (forward ? 1 - g.slices : g.slices - 1) : (forward ? 1 : -1);
            return {(piece_index)(slices * 8 * PIECES) * (piece_index)g.stride, 0};
        } else {
            const int stride = (int)g.half_x.divisor * (mu == 1 ? 1 : (int)g.y.divisor);
            const int at = mu == 1 ? s.y : s.z, last = (mu == 1 ? g.extent[1] : g.extent[2]) - 1;
            const bool wrap = at == (forward ? last : 0);
            slots = (wrap ? (forward ? -last : last) : (forward ? 1 : -1)) * stride;
            edge = wrap;
        }
#ifdef __CUDACC__
        edge = 0;
#else
        if (edge) edge = forward ? g.turn[mu] : -g.turn[mu];
#endif
        return {(piece_index)(slots * PER_SLOT), edge};
    }

    // The link whose first piece is the one named; from across which edges, see Offset.
    INLINE void read(const Geometry& g, piece_index first, int turn, real (&c)[C]) const {
#ifdef __CUDACC__
        UNROLL for (int i = 0; i < PIECES; i++) {
            const chunk four = data[first + i * (piece_index)g.stride];
            c[CHUNK * i] = four.x, c[CHUNK * i + 1] = four.y;
#if REAL_BYTES == 4
            c[CHUNK * i + 2] = four.z, c[CHUNK * i + 3] = four.w;
#endif
        }
#else
        UNROLL for (int i = 0; i < C; i++) c[i] = data[first + i];
        // The next slot wants the link beside this one: a field beyond the cache comes twice as fast.
        UNROLL for (int i = 0; i < C; i++) __builtin_prefetch(&data[first + C + i]);
        if (turn != 0) {
            const lane_integer* order = (const lane_integer*)g.turns + (13 + turn) * LANES;
            UNROLL for (int i = 0; i < C; i++) c[i] = permute(c[i], order);
        }
#endif
    }

    INLINE void write(const Geometry& g, piece_index first, const real (&c)[C]) const {
#ifdef __CUDACC__
        UNROLL for (int i = 0; i < PIECES; i++) {
#if REAL_BYTES == 4
            data[first + i * (piece_index)g.stride] =
                make_float4(c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3]);
#else
            data[first + i * (piece_index)g.stride] = make_double2(c[2 * i], c[2 * i + 1]);
#endif
        }
#else
        UNROLL for (int i = 0; i < C; i++) data[first + i] = c[i];
#endif
    }
};
