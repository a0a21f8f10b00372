// Products of the two-link operators of consecutive slabs, after those of the preceding devices. Called once per pair
// of lines, on any slice.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    TwoLinks operators;
    int slabs;
    TwoLinks before;  // the product of the operators on the preceding devices, or null
    TwoLinks after;
};

INLINE void two_links_product_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int row = 0; row < PAIRS; row++) {
        PairRow v = a.before.data ? a.before.load(g, site, 0, row) : unit_row(row);
        ROLLED
        for (int slab = 0; slab < a.slabs; slab++) v = a.operators.times(v, g, site, slab);
        a.after.store(g, site, 0, row, v);
    }
}

SITE_KERNEL(two_links_product, two_links_product_site)
