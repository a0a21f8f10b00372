// Copy the links of some directions from one field to another.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
    int directions;  // bit mu: links of direction mu are copied
};

INLINE void copy_links_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const packet_index here = Field::place(g, site);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        if (!(a.directions >> mu & 1)) continue;
        const packet_index place = here + Field::direction(g, site.parity, mu);
        GROUP::store(a.target, g, place, GROUP::load(a.source, g, place));
    }
}

SITE_KERNEL(copy_links, copy_links_site)
