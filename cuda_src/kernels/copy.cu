// Copies the links of every site to another field: what memory gives where nothing is computed.
#include "../kernel.h"
#include "../su3.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
};

INLINE void copy_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    UNROLL for (int mu = 0; mu < 4; mu++) {
        const piece_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
        GROUP::store(a.target, g, here, GROUP::load(a.source, g, here));
    }
}

SITE_KERNEL(copy, Arguments, copy_site)
