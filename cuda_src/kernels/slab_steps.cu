// The transporters of one step in space on the boundaries of slabs, which are averages over paths. Called on the first
// slice of every slab.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    SlabLines steps;
    int paths, length;
    int path[6][3];  // directions: 0, 1, 2 for x, y, z forwards and -1, -2, -3 backwards
    int thickness;
};

INLINE void slab_steps_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    a.steps.store(g, site, site.t / a.thickness, mean_over_paths(a.links, g, site, a.paths, a.length, a.path));
}

SITE_KERNEL(slab_steps, slab_steps_site)
