// The scalar products Re and Im of <w, r>, unless w is null, and <r, r>, of one vector.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors w, r;
    int vector;
    double* sums;
};

INLINE void multiply_spinors_site(const Arguments& a, const Site& site, real (&values)[PRODUCTS]) {
    const Geometry& g = a.geometry;
    const Spinor r = load_spinor(a.r, g, site, a.vector);
    if (a.w.data) {
        const Spinor w = load_spinor(a.w, g, site, a.vector);
        add_products(&w, r, values);
    } else {
        add_products(nullptr, r, values);
    }
}

SUM_KERNEL(multiply_spinors, PRODUCTS, multiply_spinors_site)
