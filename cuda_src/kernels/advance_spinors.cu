// A step of a Krylov solver for one vector: x += a p + b r, unless x is null, and then r += c t. The sums are Re and Im
// of <w, r>, unless w is null, and <r, r>.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors x, p, r, t, w;
    double a[2], b[2], c[2];
    int vector;
    double* sums;
};

INLINE void advance_spinors_site(const Arguments& a, const Site& site, real (&values)[PRODUCTS]) {
    const Geometry& g = a.geometry;
    Spinor r = load_spinor(a.r, g, site, a.vector);
    if (a.x.data) {
        Spinor x = load_spinor(a.x, g, site, a.vector);
        add_multiple(x, a.a, load_spinor(a.p, g, site, a.vector));
        add_multiple(x, a.b, r);
        store_spinor(a.x, g, site, a.vector, x);
    }
    add_multiple(r, a.c, load_spinor(a.t, g, site, a.vector));
    store_spinor(a.r, g, site, a.vector, r);
    if (a.w.data) {
        const Spinor w = load_spinor(a.w, g, site, a.vector);
        add_products(&w, r, values);
    } else {
        add_products(nullptr, r, values);
    }
}

SUM_KERNEL(advance_spinors, PRODUCTS, advance_spinors_site)
