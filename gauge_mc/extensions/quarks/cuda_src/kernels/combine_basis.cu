// r = a r + sum over j of c_j v_j, for one vector r and several vectors v_j. If a is 0, r is not read.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors r, v;
    double c[COMBINED_REALS];
    double a;
    int vectors;
};

INLINE void combine_basis_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    Spinor sum;
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) sum.c[i] = broadcast(0);
    if (a.a != 0) add_multiple(sum, {a.a, 0}, load_spinor(a.r, g, site, 0));
    ROLLED
    for (int j = 0; j < a.vectors; j++)
        add_multiple(sum, {a.c[2 * j], a.c[2 * j + 1]}, load_spinor(a.v, g, site, j));
    store_spinor(a.r, g, site, 0, sum);
}

SITE_KERNEL(combine_basis, combine_basis_site)
