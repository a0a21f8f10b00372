// Invert the hermitian part H of a Dirac operator that is diagonal in the sites: (H^2 + mass^2)^{-1}, or H^{-1} if the mass
// is 0. H need not be positive, but H^2 + mass^2 is.
#include "arch/launch.h"
#include "dirac/block.h"

struct Arguments {
    Geometry geometry;
    Work work;
    const void* blocks;
    void* inverse;
    double mass;
};

// x -> x (2 - a x), which squares the relative error of an inverse x of a.
INLINE Block improved(const Block& a, const Block& x) {
    Block rest = product(a, x);
    for (int i = 0; i < BLOCK_ROWS; i++)
        for (int j = 0; j < BLOCK_ROWS; j++)
            rest.re[i][j] = scalar(i == j ? 2 : 0) - rest.re[i][j], rest.im[i][j] = -rest.im[i][j];
    return product(x, rest);
}

// (a^2 + mass^2)^{-1}, or a^{-1} if the mass is 0.
INLINE Block inverse_of(const Block& a, scalar mass) {
    const Block inverse = inverse_of_positive(square_plus(a, mass));
    return mass != 0 ? inverse : improved(a, product(a, inverse));
}

INLINE void invert_blocks_site(const Arguments& a, const Site& site) {
    ROLLED
    for (int chirality = 0; chirality < 2; chirality++) {
        const Block h = load_block(a.blocks, a.geometry, site, chirality);
        store_block(a.inverse, a.geometry, site, chirality, inverse_of(h, (scalar)a.mass));
    }
}

SITE_KERNEL(invert_blocks, invert_blocks_site)
