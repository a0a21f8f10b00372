// p = a p + b r + c v for one vector. What is multiplied by 0 is not read, so that it need not be a number.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors p, r, v;
    double a[2], b[2], c[2];
    int vector;
};

INLINE void combine_spinors_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    Spinor sum;
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) sum.c[i] = broadcast(0);
    auto add = [&](const Spinors& f, const double (&factor)[2]) {
        if (factor[0] != 0 || factor[1] != 0) add_multiple(sum, factor, load_spinor(f, g, site, a.vector));
    };
    add(a.p, a.a);
    add(a.r, a.b);
    add(a.v, a.c);
    store_spinor(a.p, g, site, a.vector, sum);
}

SITE_KERNEL(combine_spinors, combine_spinors_site)
