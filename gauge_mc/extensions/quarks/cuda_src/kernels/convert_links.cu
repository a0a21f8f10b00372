// Copy the links of a field to another type of storage, for the transport of spinors.
#include "arch/launch.h"
#include "dirac/elsewhere.h"
#include "dirac/transport.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Transport target;
    const void* links;  // the components that the group stores: [t][parity][mu]
    Elsewhere elsewhere;
};

INLINE void convert_links_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const int slice = slice_in_memory(g, site);
    const size_t bytes = elsewhere_bytes(a.elsewhere, a.elsewhere.number_bytes * GROUP::COMPONENTS);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        real c[GROUP::COMPONENTS], u[MATRIX_REALS], numbers[TRANSPORT::C];
        const char* const block = (const char*)a.links + ((slice * 2 + site.parity) * 4 + mu) * bytes;
        load_elsewhere<true>(a.elsewhere, g, site, block, c);
        GROUP::entries(c, u);
        TRANSPORT::numbers(u, numbers);
        STORAGE::store_unit(g, link_block(a.target, g, slice, site.parity, mu), site.slot, numbers);
    }
}

SITE_KERNEL(convert_links, convert_links_site)
