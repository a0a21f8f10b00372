// Copy a field of hermitian blocks to another type of storage.
#include "arch/launch.h"
#include "dirac/blocks.h"
#include "dirac/elsewhere.h"

struct Arguments {
    Geometry geometry;
    Work work;
    void* target;
    const void* source;
    Elsewhere elsewhere;
};

INLINE void convert_blocks_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const size_t bytes = elsewhere_bytes(a.elsewhere, a.elsewhere.number_bytes * BLOCK_REALS);
    ROLLED
    for (int chirality = 0; chirality < 2; chirality++) {
        const int number = (slice_in_memory(g, site) * 2 + site.parity) * 2 + chirality;
        real h[BLOCK_REALS];
        load_elsewhere<false>(a.elsewhere, g, site, (const char*)a.source + number * bytes, h);
        STORAGE::store(g, chiral_block(a.target, g, site, chirality), site.slot, h);
    }
}

SITE_KERNEL(convert_blocks, convert_blocks_site)
