// The derivative of an action with the hermitian part H of a Dirac operator that is diagonal in the sites, for pairs of
// vectors X_i and Y_i on all sites: hermitian blocks L with dS = -2 sum over i of w_i Re X_i^dagger (dH) Y_i
// = Re Tr (L dH), so that L = -sum over i of w_i (Y_i X_i^dagger + X_i Y_i^dagger).
#include "arch/launch.h"
#include "dirac/blocks.h"
#include "dirac/force.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors x, y;
    void* derivative;  // L
    double weights[MOST_PAIRS];
    int pairs;
    int first;         // whether L is 0 so far, whatever is stored
};

template <int CHIRALITY> INLINE void add_pairs(const Arguments& a, Site site) {
    compute_again(site.slot), compute_again(site.t);  // or else spinors would be kept for both chiralities
    const Geometry& g = a.geometry;
    char* const block = chiral_block(a.derivative, g, site, CHIRALITY);
    real h[BLOCK_REALS];
    if (a.first) {
        UNROLL for (int i = 0; i < BLOCK_REALS; i++) h[i] = broadcast(0);
    } else {
        STORAGE::load(g, block, site.slot, h);
    }
    ROLLED
    for (int n = 0; n < a.pairs; n++) {
        Spinor x = load_spinor(a.x, g, site, n);
        const Spinor y = load_spinor(a.y, g, site, n);
        const scalar weight = -(scalar)a.weights[n];
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) x.c[i] = weight * x.c[i];
        UNROLL for (int i = 0; i < BLOCK_ROWS; i++) {
            const int row = component(2 * CHIRALITY + i / GROUP::N, i % GROUP::N);
            const real xr = x.c[row], xi = x.c[row + 1], yr = y.c[row], yi = y.c[row + 1];
            h[i] = h[i] + scalar(2) * (yr * xr + yi * xi);
            UNROLL for (int j = 0; j < i; j++) {
                const int column = component(2 * CHIRALITY + j / GROUP::N, j % GROUP::N);
                const real pr = x.c[column], pi = x.c[column + 1], qr = y.c[column], qi = y.c[column + 1];
                real &re = h[below(i, j)], &im = h[below(i, j) + 1];
                re = re + yr * pr + yi * pi + xr * qr + xi * qi;
                im = im + yi * pr - yr * pi + xi * qr - xr * qi;
            }
        }
    }
    STORAGE::store(g, block, site.slot, h);
}

INLINE void pair_derivative_site(const Arguments& a, const Site& site) {
    add_pairs<0>(a, site);
    add_pairs<1>(a, site);
}

SITE_KERNEL(pair_derivative, pair_derivative_site)
