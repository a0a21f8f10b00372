// Copies the links of every site to another field: what memory gives where nothing is computed.
#include "../kernel.h"
#include "../su3.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
};

INLINE void copy_site(const Arguments& a, const Site& site) {
    const piece_index here = GROUP::Field::place(a.geometry, site);
    UNROLL for (int mu = 0; mu < 4; mu++) {
        const GROUP::Link u = GROUP::load(a.source, a.geometry, site.parity, mu, here, 0);
        GROUP::store(a.target, a.geometry, site.parity, mu, here, u);
    }
}

SITE_KERNEL(copy, Arguments, copy_site)
