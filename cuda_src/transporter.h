// Products of links along spatial lines, and how to reach what is some way off in space.
//
// A transporter is a product of links or an average of such products, and so any matrix: a multiple
// of a quaternion for SU(2), nine complex numbers for SU(3). A field of them holds two a site, the
// transporter of one step and that of the whole line.
#pragma once

#include "su3.h"

// SU(3)'s eighteen fill no whole number of a GPU's 16 bytes.
constexpr int LINE_COMPONENTS = GROUP::N == 2 ? 4 : 20;

struct Lines : Links<LINE_COMPONENTS> {
    static constexpr int STEP = 0, LINE = 1;

    static INLINE piece_index place(const Geometry& g, const Site& s, int which) {
        const int block = (s.t * 2 + s.parity) * 2 + which;
        return (piece_index)(block * PIECES) * (piece_index)g.stride + (piece_index)(s.slot * PER_SLOT);
    }
};

INLINE Quaternion adjoint(const Quaternion& q) { return q.conj(); }
INLINE Quaternion product(const Quaternion& p, const Quaternion& q) { return p * q; }
INLINE Quaternion multiply_adjoint(const Quaternion& p, const Quaternion& u) { return p * u.conj(); }
// g u h^dagger for three links.
INLINE Quaternion transformed(const Quaternion& g, const Quaternion& u, const Quaternion& h) { return g * u * h.conj(); }
INLINE Quaternion scaled(const Quaternion& q, scalar s) { return q.times(broadcast(s)); }
INLINE void add(Quaternion& sum, const Quaternion& q) { UNROLL for (int i = 0; i < 4; i++) sum.a[i] = sum.a[i] + q.a[i]; }
INLINE Quaternion link_of(const Quaternion& q) { return q; }

INLINE SU3::Matrix adjoint(const SU3::Matrix& m) {
    SU3::Matrix a;
    UNROLL for (int i = 0; i < 9; i++) a.row[i % 3].c[i / 3] = conj(m.row[i / 3].c[i % 3]);
    return a;
}
INLINE SU3::Matrix product(const SU3::Matrix& a, const SU3::Matrix& b) {
    return {{SU3::times(a.row[0], b), SU3::times(a.row[1], b), SU3::times(a.row[2], b)}};
}
INLINE SU3::Matrix multiply_adjoint(const SU3::Matrix& a, const SU3::Link& u) {
    const SU3::Matrix m = SU3::matrix(u);
    return {{SU3::times_adjoint(a.row[0], m), SU3::times_adjoint(a.row[1], m), SU3::times_adjoint(a.row[2], m)}};
}
INLINE SU3::Link transformed(const SU3::Link& g, const SU3::Link& u, const SU3::Link& h) {
    const SU3::Matrix m = SU3::matrix(u);
    const SU3::Row first = SU3::times(g.row[0], m), second = SU3::times(g.row[1], m);
    const SU3::Matrix n = SU3::matrix(h);
    return {{SU3::times_adjoint(first, n), SU3::times_adjoint(second, n)}};
}
INLINE SU3::Matrix scaled(const SU3::Matrix& m, scalar s) {
    const real factor = broadcast(s);
    return {{SU3::scaled(m.row[0], factor), SU3::scaled(m.row[1], factor), SU3::scaled(m.row[2], factor)}};
}
INLINE void add(SU3::Matrix& sum, const SU3::Matrix& m) {
    UNROLL for (int i = 0; i < 9; i++) sum.row[i / 3].c[i % 3] = sum.row[i / 3].c[i % 3] + m.row[i / 3].c[i % 3];
}
INLINE SU3::Link link_of(const SU3::Matrix& m) { return {{m.row[0], m.row[1]}}; }

// Re Tr (a b^dagger).
INLINE real overlap(const Quaternion& a, const Quaternion& b) {
    const real half = a.a[0] * b.a[0] + a.a[1] * b.a[1] + a.a[2] * b.a[2] + a.a[3] * b.a[3];
    return half + half;
}
INLINE real overlap(const SU3::Matrix& a, const SU3::Matrix& b) {
    real sum = broadcast(0);
    UNROLL for (int i = 0; i < 9; i++) {
        sum = sum + a.row[i / 3].c[i % 3].re * b.row[i / 3].c[i % 3].re;
        sum = sum + a.row[i / 3].c[i % 3].im * b.row[i / 3].c[i % 3].im;
    }
    return sum;
}

INLINE void unpack(const real (&c)[4], Quaternion& q) { UNROLL for (int i = 0; i < 4; i++) q.a[i] = c[i]; }
INLINE void unpack(const real (&c)[20], SU3::Matrix& m) {
    UNROLL for (int i = 0; i < 9; i++) m.row[i / 3].c[i % 3] = {c[2 * i], c[2 * i + 1]};
}
INLINE void pack(const Quaternion& q, real (&c)[4]) { UNROLL for (int i = 0; i < 4; i++) c[i] = q.a[i]; }
INLINE void pack(const SU3::Matrix& m, real (&c)[20]) {
    UNROLL for (int i = 0; i < 9; i++) c[2 * i] = m.row[i / 3].c[i % 3].re, c[2 * i + 1] = m.row[i / 3].c[i % 3].im;
    c[18] = c[19] = broadcast(0);
}

INLINE GROUP::Matrix load_line(const Lines& lines, const Geometry& g, const Site& site, int which) {
    real c[LINE_COMPONENTS];
    lines.read(g, Lines::place(g, site, which), 0, c);
    GROUP::Matrix m;
    unpack(c, m);
    return m;
}
INLINE void store_line(const Lines& lines, const Geometry& g, const Site& site, int which, const GROUP::Matrix& m) {
    real c[LINE_COMPONENTS];
    pack(m, c);
    lines.write(g, Lines::place(g, site, which), c);
}
INLINE GROUP::Link load_link(const GROUP::Field& links, const Geometry& g, const Site& site, int mu) {
    return GROUP::load(links, g, GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, mu));
}

// One line along t for every site of a slice, [parity][slot] with the parity that the line has on even
// slices, so that a line has its place whichever slice it has come to.
struct TimeLines : GROUP::Field {
    static INLINE int parity(const Geometry& g, const Site& s) { return (s.parity + lattice_t(g, s.t)) & 1; }
    static INLINE piece_index place(const Geometry& g, int parity, int slot) {
        return (piece_index)(parity * PIECES) * (piece_index)g.stride + (piece_index)(slot * PER_SLOT);
    }
};

// A line so far, which is 1 where none has begun.
INLINE GROUP::Link load_time_line(const TimeLines& lines, const Geometry& g, piece_index first, int turn) {
    return lines.data ? GROUP::load(lines, g, first, turn) : link_of(GROUP::one());
}
// Lines that two kernels or two slabs follow must agree in every bit.
ONCE GROUP::Link longer(const GROUP::Link& line, const GROUP::Link& u) {
    return GROUP::normalised(link_of(GROUP::multiply(GROUP::matrix(line), u)));
}

// A site some steps off in its slice, and how many sub-lattice edges lie between.
struct Away {
    Site site;
    int edges[3];
};

INLINE Away away(const Geometry& g, const Site& s, const int (&steps)[3]) {
    int at[3] = {s.x + steps[0], s.y + steps[1], s.z + steps[2]}, edges[3] = {0, 0, 0};
    UNROLL for (int d = 0; d < 3; d++) {
        for (; at[d] >= g.extent[d]; edges[d]++) at[d] -= g.extent[d];
        for (; at[d] < 0; edges[d]--) at[d] += g.extent[d];
    }
    const int parity = (s.parity + steps[0] + steps[1] + steps[2]) & 1;
    const int slot = (at[2] * (int)g.y.divisor + at[1]) * (int)g.half_x.divisor + (at[0] >> 1);
    return {{at[0], at[1], at[2], s.t, parity, slot}, {edges[0], edges[1], edges[2]}};
}

// What was read at away's site, each lane's from the lane that lies so many edges off.
template <class M> INLINE M carried(M m, const Geometry& g, const Away& from) {
#ifndef __CUDACC__
    lane_integer order[LANES];
    for (int lane = 0; lane < LANES; lane++) order[lane] = lane;
    bool moved = false;
    for (int d = 0; d < 3; d++) {
        const int turn = from.edges[d] > 0 ? g.turn[d] : -g.turn[d];
        const lane_integer* next = (const lane_integer*)g.turns + (13 + turn) * LANES;
        if (turn == 0) continue;
        for (int n = from.edges[d] > 0 ? from.edges[d] : -from.edges[d]; n > 0; n--, moved = true)
            for (int lane = 0; lane < LANES; lane++) order[lane] = next[order[lane]];
    }
    real* component = (real*)&m;
    if (moved)
        UNROLL for (unsigned i = 0; i < sizeof(M) / sizeof(real); i++) component[i] = permute(component[i], order);
#endif
    return m;
}
