// Lines along t through a slab of T slices: V(x) U_t(x, 0) ... U_t(x, T-1), where V is the line through
// the preceding slabs. Called once per line, on its first site.
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
    const Geometry& g = a.geometry;
    const GROUP::Link line = time_line(a.links, a.before, g, site, a.slices);
    GROUP::store(a.after, g, TimeLines::place(g, site, TimeLines::parity(g, site)), line);
}

SITE_KERNEL(time_line, time_line_site)
