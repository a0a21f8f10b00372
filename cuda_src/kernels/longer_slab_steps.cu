// Lines in space on the boundaries of slabs, made one step longer. Called on the first slice of every slab. The
// boundaries of the slabs that follow on other devices are in memory as well, and are dealt with in turn.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    SlabLines lines, steps, longer;
    int end[3];  // vector from the first to the last site of a line
    int thickness;
    int slabs;      // number of slabs of this device
    int in_memory;  // number of boundaries in memory, those of other devices among them
};

INLINE void longer_slab_steps_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const Displaced from = displaced(g, site, a.end);
    ROLLED
    for (int slab = site.t / a.thickness; slab < a.in_memory; slab += a.slabs) {
        const GROUP::Matrix step = brought_from(from, g, a.steps.load(g, from.site, slab));
        a.longer.store(g, site, slab, GROUP::product(a.lines.load(g, site, slab), step));
    }
}

SITE_KERNEL(longer_slab_steps, longer_slab_steps_site)
