// Lines along t through a slab of T slices: V(x) U_t(x, 0) ... U_t(x, T-1), where V is the line through
// the preceding slabs. Called once per line, on its first site. The sites of a line have the same slot and alternating
// parity.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    TimeLines before, after;
    int slices;  // length of the lines in this slab
};

INLINE void time_line_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const int start = TimeLines::parity(g, site);
    GROUP::Link line = load_time_line(a.before, g, TimeLines::place(g, site, start), 0);
    Site at = site;
    ROLLED
    for (; at.t < a.slices; at.t++) {
        line = longer(line, GROUP::load(a.links, g, Field::place(g, at) + Field::direction(g, at.parity, 3)));
        at.parity = 1 - at.parity;
    }
    GROUP::store(a.after, g, TimeLines::place(g, site, start), line);
}

SITE_KERNEL(time_line, time_line_site)
