// Transform a field to temporal gauge and store the result in another field: U_mu(x) becomes
// V(x) U_mu(x) V(x+mu)^dagger with V(x, t) = U_t(x, 0) ... U_t(x, t-1). Then U_t is 1 except on the last
// slice, where it is the Polyakov line. `before` holds the lines V through the preceding slabs.
//
// Called for every line and every spatial direction mu, so that a GPU has enough to do. The directions are counted as
// if they were three replicas of each lattice.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
    TimeLines before;
    int slices;  // length of the lines in this slab
};

INLINE void temporal_gauge_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    Site at = site;
    at.replica = site.replica / 3;
    const int mu = site.replica - 3 * at.replica;
    const int start = TimeLines::parity(g, at), end = g.full[3] - 1 - g.first;
    const Offset ahead = Field::step(g, at, mu, true);
    const packet_index there = TimeLines::place(g, at, 1 - start) + ahead.packets;
    GROUP::Link near = load_time_line(a.before, g, TimeLines::place(g, at, start), 0);
    GROUP::Link far = load_time_line(a.before, g, there, ahead.crossing);
    ROLLED
    for (; at.t < a.slices; at.t++) {
        const packet_index here = Field::place(g, at), place = here + Field::direction(g, at.parity, mu);
        const packet_index time = here + Field::direction(g, at.parity, 3);
        const packet_index time_ahead = here + Field::direction(g, 1 - at.parity, 3) + ahead.packets;
        // All loads come first, so that they are under way at the same time.
        const GROUP::Link u = GROUP::load(a.source, g, place);
        const GROUP::Link near_step = GROUP::load(a.source, g, time);
        const GROUP::Link far_step = GROUP::load(a.source, g, time_ahead, ahead.crossing);
        GROUP::store(a.target, g, place, GROUP::normalised(GROUP::transformed(near, u, far)));
        near = longer(near, near_step);
        far = longer(far, far_step);
        if (mu == 0) GROUP::store(a.target, g, time, at.t == end ? near : GROUP::link(GROUP::one()));
        at.parity = 1 - at.parity;
    }
}

SITE_KERNEL(temporal_gauge, temporal_gauge_site)
