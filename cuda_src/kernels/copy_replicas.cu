// Copy the links of some replicas from one field to another.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
    const int* replicas;  // the n-th lattice of the launch is this replica
};

INLINE void copy_replicas_site(const Arguments& a, const Site& launched) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    Site site = launched;
    site.replica = a.replicas[launched.replica];
    const packet_index here = Field::place(g, site);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const packet_index place = here + Field::direction(g, site.parity, mu);
        GROUP::store(a.target, g, place, GROUP::load(a.source, g, place));
    }
}

SITE_KERNEL(copy_replicas, copy_replicas_site)
