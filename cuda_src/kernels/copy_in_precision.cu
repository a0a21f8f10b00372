// Copy the links of a field of another precision.
#include "arch/launch.h"
#include "dirac/elsewhere.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    void* target;
    const void* source;  // the components that the group stores: [t][parity][mu]
    Elsewhere elsewhere;
};

INLINE void copy_in_precision_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const int slice = slice_in_memory(g, site);
    const size_t bytes = elsewhere_bytes(a.elsewhere, a.elsewhere.number_bytes * GROUP::COMPONENTS);
    const size_t own = (size_t)STORAGE::unit_bytes(GROUP::COMPONENTS) * LANES * g.slots;
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const int block = (slice * 2 + site.parity) * 4 + mu;
        real c[GROUP::COMPONENTS];
        load_elsewhere<true>(a.elsewhere, g, site, (const char*)a.source + block * bytes, c);
        STORAGE::store_unit(g, (char*)a.target + block * own, site.slot, c);
    }
}

SITE_KERNEL(copy_in_precision, copy_in_precision_site)
