// The end of a step of conjugate gradients for every vector: x += a p, and then p = b p + s.
#include "arch/launch.h"
#include "dirac/products.h"

struct Arguments {
    Geometry geometry;  // the vectors are its replicas
    Work work;
    Spinors x, p, s;
    Factors a, b;
    const int* halted;  // see is_idle
};

INLINE void advance_direction_site(const Arguments& a, const Site& site) {
    if (is_idle(a.halted)) return;
    const Geometry& g = a.geometry;
    const Spinor p = load_vector(a.p, g, site);
    Spinor x = load_vector(a.x, g, site), next = load_vector(a.s, g, site);
    add_multiple(x, factor_of(a.a, site), p);
    store_vector(a.x, g, site, x);
    add_multiple(next, factor_of(a.b, site), p);
    store_vector(a.p, g, site, next);
}

SITE_KERNEL(advance_direction, advance_direction_site)
