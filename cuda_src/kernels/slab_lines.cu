// Lines along t through slabs of some thickness, U_t(x, t) ... U_t(x, t + thickness - 1). Called once per line, on its
// first site.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    SlabLines lines;
    int thickness;
};

INLINE void slab_lines_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const GROUP::Link line = time_line(a.links, {}, g, site, site.t + a.thickness);
    a.lines.store(g, site, site.t / a.thickness, GROUP::matrix(line));
}

SITE_KERNEL(slab_lines, slab_lines_site)
