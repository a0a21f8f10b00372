// Transform a field to temporal gauge and store the result in another field: U_mu(x) becomes
// V(x) U_mu(x) V(x+mu)^dagger with V(x, t) = U_t(x, 0) ... U_t(x, t-1). Then U_t is 1 except on the last
// slice, where it is the Polyakov line. Called once per line. `before` holds the lines V through the
// preceding slabs.
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
    const int start = TimeLines::parity(g, site), end = g.full[3] - 1 - g.first;
    ROLLED
    for (int mu = 0; mu < 3; mu++) {
        const Offset ahead = Field::step(g, site, mu, true);
        const packet_index there = TimeLines::place(g, site, 1 - start) + ahead.packets;
        GROUP::Link near = load_time_line(a.before, g, TimeLines::place(g, site, start), 0);
        GROUP::Link far = load_time_line(a.before, g, there, ahead.crossing);
        Site at = site;
        ROLLED
        for (; at.t < a.slices; at.t++) {
            const packet_index here = Field::place(g, at), place = here + Field::direction(g, at.parity, mu);
            const packet_index time = Field::direction(g, at.parity, 3);
            const packet_index time_ahead = Field::direction(g, 1 - at.parity, 3);
            const GROUP::Link u = GROUP::transformed(near, GROUP::load(a.source, g, place), far);
            GROUP::store(a.target, g, place, GROUP::normalised(u));
            near = longer(near, GROUP::load(a.source, g, here + time));
            far = longer(far, GROUP::load(a.source, g, here + time_ahead + ahead.packets, ahead.crossing));
            if (mu == 0) GROUP::store(a.target, g, here + time, at.t == end ? near : GROUP::link(GROUP::one()));
            at.parity = 1 - at.parity;
        }
    }
}

SITE_KERNEL(temporal_gauge, temporal_gauge_site)
