// Copy vectors on one parity to another type of storage.
#include "arch/launch.h"
#include "dirac/elsewhere.h"
#include "dirac/spinors.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors target, source;
    Elsewhere elsewhere;
    int vectors;
};

INLINE void convert_spinors_site(const Arguments& a, const Site& site) {
    ROLLED
    for (int vector = 0; vector < a.vectors; vector++) {
        const char* const block = spinor_block(a.source, slice_in_memory(a.geometry, site), site.parity, vector);
        Spinor psi;
        load_elsewhere<false>(a.elsewhere, a.geometry, site, block, psi.c);
        store_spinor(a.target, a.geometry, site, vector, psi);
    }
}

SITE_KERNEL(convert_spinors, convert_spinors_site)
