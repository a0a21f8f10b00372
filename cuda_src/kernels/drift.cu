// A drift of the links with the momenta, U <- exp(drift P) U.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField momenta;
    double drift;
};

INLINE void drift_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const packet_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
        const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
        const GROUP::Algebra x = (scalar)a.drift * a.momenta.load(g, there);
        GROUP::store(a.links, g, here, GROUP::reunitarised(GROUP::exponential_times(x, GROUP::load(a.links, g, here))));
    }
}

SITE_KERNEL(drift, drift_site)
