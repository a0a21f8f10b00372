// Links that are all 1. The kernel that reads files could write them as well, but takes several times as long to compile.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
};

INLINE void cold_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const packet_index here = GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, mu);
        GROUP::store(a.links, g, here, GROUP::link(GROUP::one()));
    }
}

SITE_KERNEL(cold, cold_site)
