// p = a p + b r + c v + d w for every vector. What is multiplied by 0 is not read, so that it need not be a number.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;  // the vectors are its replicas
    Work work;
    Spinors p, r, v, w;
    Factors a, b, c, d;
    const int* halted;  // see is_idle
};

INLINE void combine_spinors_site(const Arguments& a, const Site& site) {
    if (is_idle(a.halted)) return;
    const Geometry& g = a.geometry;
    Spinor sum;
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) sum.c[i] = broadcast(0);
    auto add = [&](const Spinors& f, const Factor& factor) {
        if (factor.re != 0 || factor.im != 0) add_multiple(sum, factor, load_vector(f, g, site));
    };
    add(a.p, factor_of(a.a, site));
    add(a.r, factor_of(a.b, site));
    add(a.v, factor_of(a.c, site));
    add(a.w, factor_of(a.d, site));
    store_vector(a.p, g, site, sum);
}

SITE_KERNEL(combine_spinors, combine_spinors_site)
