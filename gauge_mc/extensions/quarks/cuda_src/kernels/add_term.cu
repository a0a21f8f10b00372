// Add a term to the hermitian part H of a Dirac operator that is diagonal in the sites, or set H to 1 plus the term.
#include "arch/launch.h"
#include "dirac/term.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    TERM::Coefficients term;
    void* blocks;  // H
    int first;     // whether H is 1 so far, whatever is stored
};

INLINE void add_term_site(const Arguments& a, const Site& site) {
    Block h[2];
    for (int chirality = 0; chirality < 2; chirality++)
        h[chirality] = a.first ? unit_block() : load_block(a.blocks, a.geometry, site, chirality);
    TERM::add(a.term, a.links, a.geometry, site, h);
    ROLLED
    for (int chirality = 0; chirality < 2; chirality++) store_block(a.blocks, a.geometry, site, chirality, h[chirality]);
}

SITE_KERNEL(add_term, add_term_site)
