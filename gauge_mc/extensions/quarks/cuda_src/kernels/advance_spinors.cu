// A step of a Krylov solver for every vector: x += a p + b r, unless x is null, and then r += c t. The sums are Re and Im
// of <w, r>, unless w is null, and <r, r>.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;  // the vectors are its replicas
    Work work;
    Spinors x, p, r, t, w;
    Factors a, b, c;
    const int* halted;  // see is_idle
    double* sums;
};

INLINE void advance_spinors_site(const Arguments& a, const Site& site, real (&values)[PRODUCTS]) {
    if (is_idle(a.halted)) return;
    const Geometry& g = a.geometry;
    Spinor r = load_vector(a.r, g, site);
    if (a.x.data) {
        Spinor x = load_vector(a.x, g, site);
        add_multiple(x, factor_of(a.a, site), load_vector(a.p, g, site));
        add_multiple(x, factor_of(a.b, site), r);
        store_vector(a.x, g, site, x);
    }
    add_multiple(r, factor_of(a.c, site), load_vector(a.t, g, site));
    store_vector(a.r, g, site, r);
    if (a.w.data) {
        const Spinor w = load_vector(a.w, g, site);
        add_products(&w, r, values);
    } else {
        add_products(nullptr, r, values);
    }
}

WIDE_SUM_KERNEL(advance_spinors, PRODUCTS, advance_spinors_site)
