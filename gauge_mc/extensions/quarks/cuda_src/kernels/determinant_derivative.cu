// The derivative of S = (weight / 2) sum over the odd sites of ln det (H^2 + m^2) with the hermitian part H of a Dirac
// operator that is diagonal in the sites: hermitian blocks L = weight H (H^2 + m^2)^{-1} with dS = Re Tr (L dH) on the odd
// sites, and 0 on the others.
#include "arch/launch.h"
#include "dirac/block.h"

struct Arguments {
    Geometry geometry;
    Work work;
    const void* blocks;   // H
    const void* inverse;  // (H^2 + m^2)^{-1}, or H^{-1} if m is 0
    void* derivative;     // L
    double mass, weight;
};

INLINE void determinant_derivative_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int chirality = 0; chirality < 2; chirality++) {
        Block m = {};
        if (site.parity == 1) {
            m = load_block(a.inverse, g, site, chirality);
            if (a.mass != 0) m = product(load_block(a.blocks, g, site, chirality), m);
            for (int i = 0; i < BLOCK_ROWS; i++)
                for (int j = 0; j < BLOCK_ROWS; j++)
                    m.re[i][j] = (scalar)a.weight * m.re[i][j], m.im[i][j] = (scalar)a.weight * m.im[i][j];
        }
        store_block(a.derivative, g, site, chirality, m);
    }
}

SITE_KERNEL(determinant_derivative, determinant_derivative_site)
