// Copy the links of every site to another field, to measure the memory bandwidth without computation.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
};

INLINE void copy_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    UNROLL for (int mu = 0; mu < 4; mu++) {
        const packet_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
        GROUP::store(a.target, g, here, GROUP::load(a.source, g, here));
    }
}

SITE_KERNEL(copy, copy_site)
