// Two-link operators: for two sites x and x + R, and the lines L along t that begin there and have some length,
// averages of the tensor products T_(ac)(bd) = L_ab(x) L_cd(x + R)^*. As matrices with the rows (ac) and the columns
// (bd), the operators of consecutive pieces of the lines are multiplied (Luescher and Weisz, hep-lat/0108014).
//
// The slices of a lattice are divided into slabs of some thickness. Fields of lines and of two-link operators have an
// element for every slab and every site in space.
#pragma once

#include "lattice/lines.h"

constexpr int PAIRS = GROUP::N * GROUP::N;             // rows of an operator, and entries of a row
constexpr int ROW_COMPONENTS = (2 * PAIRS + 3) / 4 * 4;  // stored reals of a row, which fill whole packets

// One row of a two-link operator: v_(bd).
struct PairRow {
    real re[PAIRS], im[PAIRS];
};

// The entries of a matrix, [row][column][re, im], from its stored reals, which are these or those of a link.
template <int C> INLINE void expand(const real (&c)[C], real (&entries)[2 * PAIRS]) {
    if constexpr (C >= 2 * PAIRS) {
        UNROLL for (int i = 0; i < 2 * PAIRS; i++) entries[i] = c[i];
    } else {
        GROUP::entries(c, entries);
    }
}

// Return the entries of a matrix, [row][column].
INLINE PairRow entries_of(const GROUP::Matrix& m) {
    real c[GROUP::MATRIX_COMPONENTS], all[2 * PAIRS];
    GROUP::pack(m, c);
    expand(c, all);
    PairRow e;
    UNROLL for (int i = 0; i < PAIRS; i++) e.re[i] = all[2 * i], e.im[i] = all[2 * i + 1];
    return e;
}

// Matrices of slabs: [slab][parity of the line][slot], with the parity of the line as in TimeLines.
struct SlabLines : Links<GROUP::MATRIX_COMPONENTS> {
    INLINE packet_index place(const Geometry& g, const Site& s, int slab) const {
        const int block = slab * 2 + TimeLines::parity(g, s);
        return (packet_index)(block * PACKETS) * (packet_index)g.slots + (packet_index)(s.slot * PER_SLOT);
    }
    INLINE GROUP::Matrix load(const Geometry& g, const Site& s, int slab) const {
        real c[GROUP::MATRIX_COMPONENTS];
        read(g, place(g, s, slab), 0, c);
        return GROUP::unpack(c);
    }
    INLINE void store(const Geometry& g, const Site& s, int slab, const GROUP::Matrix& m) const {
        real c[GROUP::MATRIX_COMPONENTS];
        GROUP::pack(m, c);
        write(g, place(g, s, slab), c);
    }
};

// Two-link operators of slabs: [slab][row][parity of the line][slot].
struct TwoLinks : Links<ROW_COMPONENTS> {
    INLINE packet_index place(const Geometry& g, const Site& s, int slab, int row) const {
        const int block = (slab * PAIRS + row) * 2 + TimeLines::parity(g, s);
        return (packet_index)(block * PACKETS) * (packet_index)g.slots + (packet_index)(s.slot * PER_SLOT);
    }
    INLINE PairRow load(const Geometry& g, const Site& s, int slab, int row) const {
        real c[ROW_COMPONENTS];
        read(g, place(g, s, slab, row), 0, c);
        PairRow v;
        UNROLL for (int i = 0; i < PAIRS; i++) v.re[i] = c[2 * i], v.im[i] = c[2 * i + 1];
        return v;
    }
    INLINE void store(const Geometry& g, const Site& s, int slab, int row, const PairRow& v) const {
        real c[ROW_COMPONENTS];
        UNROLL for (int i = 2 * PAIRS; i < ROW_COMPONENTS; i++) c[i] = broadcast(0);
        UNROLL for (int i = 0; i < PAIRS; i++) c[2 * i] = v.re[i], c[2 * i + 1] = v.im[i];
        write(g, place(g, s, slab, row), c);
    }

    // Return v T, where T is the operator of a slab. Unrolled code for SU(8) takes a minute to compile, and exceeds the
    // instruction cache.
    INLINE PairRow times(const PairRow& v, const Geometry& g, const Site& s, int slab) const {
        PairRow sum;
        UNROLL for (int i = 0; i < PAIRS; i++) sum.re[i] = sum.im[i] = broadcast(0);
        ROLLED_IF(GROUP::N > 4) for (int row = 0; row < PAIRS; row++) {
            const PairRow t = load(g, s, slab, row);
            UNROLL for (int i = 0; i < PAIRS; i++) {
                sum.re[i] = sum.re[i] + v.re[row] * t.re[i] - v.im[row] * t.im[i];
                sum.im[i] = sum.im[i] + v.re[row] * t.im[i] + v.im[row] * t.re[i];
            }
        }
        return sum;
    }
};

// Return a row of the unit matrix.
INLINE PairRow unit_row(int row) {
    PairRow v;
    UNROLL for (int i = 0; i < PAIRS; i++) v.re[i] = broadcast(i == row ? 1 : 0), v.im[i] = broadcast(0);
    return v;
}
