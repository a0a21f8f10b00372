// The scalar products Re and Im of <w, r>, unless w is null, and <r, r>, of every vector.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;  // the vectors are its replicas
    Work work;
    Spinors w, r;
    double* sums;
};

INLINE void multiply_spinors_site(const Arguments& a, const Site& site, real (&values)[PRODUCTS]) {
    const Geometry& g = a.geometry;
    const Spinor r = load_vector(a.r, g, site);
    if (a.w.data) {
        const Spinor w = load_vector(a.w, g, site);
        add_products(&w, r, values);
    } else {
        add_products(nullptr, r, values);
    }
}

WIDE_SUM_KERNEL(multiply_spinors, PRODUCTS, multiply_spinors_site)
