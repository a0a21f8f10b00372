// Products of links along lines, and access to sites several steps away in space.
//
// A transporter is a product of links, or an average of such products, and therefore a general matrix. A
// field of spatial lines holds one transporter per site.
#pragma once

#include "group/group.h"

struct Lines : Links<GROUP::MATRIX_COMPONENTS> {
    static INLINE packet_index place(const Geometry& g, const Site& s) {
        const int block = slice_in_memory(g, s) * 2 + s.parity;
        return (packet_index)(block * PACKETS) * (packet_index)g.slots + (packet_index)(s.slot * PER_SLOT);
    }
};

INLINE GROUP::Matrix load_line(const Lines& lines, const Geometry& g, const Site& site) {
    real c[GROUP::MATRIX_COMPONENTS];
    lines.read(g, Lines::place(g, site), 0, c);
    return GROUP::unpack(c);
}
INLINE void store_line(const Lines& lines, const Geometry& g, const Site& site, const GROUP::Matrix& m) {
    real c[GROUP::MATRIX_COMPONENTS];
    GROUP::pack(m, c);
    lines.write(g, Lines::place(g, site), c);
}
INLINE GROUP::Link load_link(const GROUP::Field& links, const Geometry& g, const Site& site, int mu) {
    return GROUP::load(links, g, GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, mu));
}

// One line along t for every site of a slice, [replica][parity][slot], where the parity is that of the line's sites
// on even slices. So the place of a line does not depend on the slice.
struct TimeLines : GROUP::Field {
    static INLINE int parity(const Geometry& g, const Site& s) { return (s.parity + lattice_t(g, s.t)) & 1; }
    static INLINE packet_index place(const Geometry& g, const Site& s, int parity) {
        const int block = s.replica * 2 + parity;
        return (packet_index)(block * PACKETS) * (packet_index)g.slots + (packet_index)(s.slot * PER_SLOT);
    }
};

// Return a line through the preceding slabs; if there are none, it is 1.
INLINE GROUP::Link load_time_line(const TimeLines& lines, const Geometry& g, packet_index first, int crossing) {
    return lines.data ? GROUP::load(lines, g, first, crossing) : GROUP::link(GROUP::one());
}
// Return a line extended by one link. Different kernels and slabs must agree in every bit.
UNCHANGED_CODE GROUP::Link longer(GROUP::Link line, GROUP::Link u) {
    return GROUP::normalised(GROUP::link(GROUP::multiply(GROUP::matrix(line), u)));
}

// Return the line through the first `slices` slices of a slab, given the lines through the preceding slabs.
// The sites of a line have the same slot and alternating parity; `site` is the first one.
INLINE GROUP::Link time_line(const GROUP::Field& links, const TimeLines& before, const Geometry& g, const Site& site,
                             int slices) {
    typedef GROUP::Field Field;
    auto load = [&](const Site& at) {
        return GROUP::load(links, g, Field::place(g, at) + Field::direction(g, at.parity, 3));
    };
    GROUP::Link line = load_time_line(before, g, TimeLines::place(g, site, TimeLines::parity(g, site)), 0);
    GROUP::Link next = load(site);
    Site at = site;
    ROLLED
    while (at.t < slices) {
        const GROUP::Link u = next;
        at.t++, at.parity = 1 - at.parity;
        if (at.t < slices) next = load(at);  // early, because there are few lines to hide its latency
        line = longer(line, u);
    }
    return line;
}

// A site several steps away in the same slice, and the number of sub-lattice edges crossed.
struct Displaced {
    Site site;
    int edges[3];
};

INLINE Displaced displaced(const Geometry& g, const Site& s, const int (&steps)[3]) {
    int at[3] = {s.x + steps[0], s.y + steps[1], s.z + steps[2]}, edges[3] = {0, 0, 0};
    UNROLL for (int d = 0; d < 3; d++) {
        for (; at[d] >= g.extent[d]; edges[d]++) at[d] -= g.extent[d];
        for (; at[d] < 0; edges[d]--) at[d] += g.extent[d];
    }
    const int parity = (s.parity + steps[0] + steps[1] + steps[2]) & 1;
    const int slot = (at[2] * (int)g.y.divisor + at[1]) * (int)g.half_x.divisor + (at[0] >> 1);
    return {{at[0], at[1], at[2], s.t, parity, slot, s.replica}, {edges[0], edges[1], edges[2]}};
}

// Move values read at a displaced site to the right lanes, one edge after the other.
template <class M> INLINE M brought_from(const Displaced& from, const Geometry& g, M m) {
    if constexpr (LANES > 1) {
        UNROLL for (int d = 0; d < 3; d++) {
            const int crossing = from.edges[d] > 0 ? g.crossing[d] : -g.crossing[d];
            if (crossing == 0) continue;
            for (int n = from.edges[d] > 0 ? from.edges[d] : -from.edges[d]; n > 0; n--)
                permute_lanes(m, g.lane_orders, NO_CROSSING + crossing);
        }
    }
    return m;
}

// Return the transporter of one step: the average over several paths of the products of their links. A path has the
// directions 0, 1, 2 for x, y, z forwards and -1, -2, -3 backwards.
template <int PATHS, int LENGTH>
INLINE GROUP::Matrix mean_over_paths(const GROUP::Field& links, const Geometry& g, const Site& site, int paths,
                                     int length, const int (&path)[PATHS][LENGTH]) {
    GROUP::Matrix sum = GROUP::zero();
    ROLLED
    for (int p = 0; p < paths; p++) {
        GROUP::Matrix line = GROUP::one();
        int steps[3] = {0, 0, 0};
        ROLLED
        for (int i = 0; i < length; i++) {
            const int code = path[p][i], mu = code < 0 ? -1 - code : code;
            UNROLL for (int d = 0; d < 3; d++) steps[d] -= d == mu && code < 0;
            const Displaced from = displaced(g, site, steps);
            const GROUP::Link u = brought_from(from, g, load_link(links, g, from.site, mu));
            line = code < 0 ? GROUP::multiply_adjoint(line, u) : GROUP::multiply(line, u);
            UNROLL for (int d = 0; d < 3; d++) steps[d] += d == mu && code >= 0;
        }
        GROUP::add(sum, line);
    }
    return GROUP::scaled(sum, scalar(1) / (scalar)paths);
}

// Return the link of direction d at the site i steps along mu and j steps along nu, forwards or backwards.
INLINE GROUP::Link distant_link(const GROUP::Field& links, const Geometry& g, Site site, int d, int mu, int i, int nu,
                                int j) {
    int steps[4];
    UNROLL for (int k = 0; k < 4; k++) steps[k] = (k == mu ? i : 0) + (k == nu ? j : 0);
    site.t += steps[3];
    site.parity = (site.parity + steps[3]) & 1;
    for (; site.t >= g.slices;) site.t -= g.slices;
    for (; site.t < 0;) site.t += g.slices;
    const int in_space[3] = {steps[0], steps[1], steps[2]};
    const Displaced from = displaced(g, site, in_space);
    return brought_from(from, g, load_link(links, g, from.site, d));
}
