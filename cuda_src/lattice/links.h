// A field of links with C stored real components each: [replica][t][parity][mu], and then slots and packets in the
// order of the machine.
#pragma once

#include "lattice/geometry.h"

template <int C> struct Links {
    static constexpr int PACKETS = C / COMPONENTS_PER_PACKET;        // packets per link
    static constexpr int PER_SLOT = SLOT_BY_SLOT ? PACKETS : 1;      // stride between slots, in packets
    packet* data;

    // The first packet of a link is at place(site) + direction(parity, mu).
    static INLINE packet_index direction(const Geometry& g, int parity, int mu) {
        return (packet_index)((parity * 4 + mu) * PACKETS) * (packet_index)g.slots;
    }
    static INLINE packet_index place(const Geometry& g, const Site& s) {
        return (packet_index)(slice_in_memory(g, s) * 8 * PACKETS) * (packet_index)g.slots + (packet_index)(s.slot * PER_SLOT);
    }

    // Return the offset from a site to its neighbour along mu.
    static INLINE Offset step(const Geometry& g, const Site& s, int mu, bool forward) {
        int slots, crossing = 0;
        if (mu == 0) {
            const int last = g.extent[0] - 1;
            const bool wrap = s.x == (forward ? last : 0);
            const int x = wrap ? (forward ? 0 : last) : s.x + (forward ? 1 : -1);
            slots = (x >> 1) - (s.x >> 1);
            crossing = wrap;
        } else if (mu == 3) {
            const bool wrap = s.t == (forward ? g.slices - 1 : 0);
            const int slices = wrap ? (forward ? 1 - g.slices : g.slices - 1) : (forward ? 1 : -1);
            return {(packet_index)(slices * 8 * PACKETS) * (packet_index)g.slots, 0};
        } else {
            const int stride = (int)g.half_x.divisor * (mu == 1 ? 1 : (int)g.y.divisor);
            const int at = mu == 1 ? s.y : s.z, last = (mu == 1 ? g.extent[1] : g.extent[2]) - 1;
            const bool wrap = at == (forward ? last : 0);
            slots = (wrap ? (forward ? -last : last) : (forward ? 1 : -1)) * stride;
            crossing = wrap;
        }
        if constexpr (LANES == 1) crossing = 0;
        else if (crossing) crossing = forward ? g.crossing[mu] : -g.crossing[mu];
        return {(packet_index)(slots * PER_SLOT), crossing};
    }

    // Return the offset to the site `steps` steps along mu, at most as many as the smallest extent of a lane's
    // sub-lattice, which is 2 or more.
    static INLINE Offset steps(const Geometry& g, const Site& s, int mu, int steps) {
        if (mu == 3) {
            int t = s.t + steps;
            for (; t >= g.slices;) t -= g.slices;
            for (; t < 0;) t += g.slices;
            return {(packet_index)((t - s.t) * 8 * PACKETS) * (packet_index)g.slots, 0};
        }
        const int at = mu == 0 ? s.x : mu == 1 ? s.y : s.z, extent = g.extent[mu];
        const int there = at + steps, edge = there >= extent ? 1 : there < 0 ? -1 : 0, inside = there - edge * extent;
        const int stride = mu == 1 ? (int)g.half_x.divisor : (int)g.half_x.divisor * (int)g.y.divisor;
        const int slots = mu == 0 ? (inside >> 1) - (at >> 1) : (inside - at) * stride;
        return {(packet_index)(slots * PER_SLOT), LANES == 1 ? 0 : edge * g.crossing[mu]};
    }

    // Read the first K components of the link whose first packet is `first`; `crossing` is that of its Offset.
    template <int K> INLINE void read(const Geometry& g, packet_index first, int crossing, real (&c)[K]) const {
        load_packets(data, first, (packet_index)g.slots, c);
        if constexpr (LANES > 1) {
            if (crossing != 0) permute_lanes(c, g.lane_orders, NO_CROSSING + crossing);
        }
    }

    // With STREAMED the link is not read again soon.
    template <bool STREAMED = false> INLINE void write(const Geometry& g, packet_index first, const real (&c)[C]) const {
        store_packets<STREAMED>(data, first, (packet_index)g.slots, c);
    }
};
