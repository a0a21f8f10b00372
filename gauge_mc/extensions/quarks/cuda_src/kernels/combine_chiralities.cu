// p = (a + b gamma_5) p + (c + d gamma_5) r for every vector, with real factors for all vectors. What is multiplied by 0 is
// not read, so that it need not be a number.
#include "arch/launch.h"
#include "dirac/spinors.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors p, r;
    double upper_p, upper_r, lower_p, lower_r;  // a + b, c + d, a - b, c - d
    int vectors;
};

INLINE void combine_chiralities_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int vector = 0; vector < a.vectors; vector++) {
        Spinor sum;
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) sum.c[i] = broadcast(0);
        auto add = [&](const Spinors& f, double upper, double lower) {
            if (upper == 0 && lower == 0) return;
            const Spinor psi = load_spinor(f, g, site, vector);
            UNROLL for (int spin = 0; spin < SPINS; spin++) {
                const scalar factor = (scalar)(spin < 2 ? upper : lower);
                UNROLL for (int colour = 0; colour < GROUP::N; colour++) {
                    const int at = component(spin, colour);
                    sum.c[at] = sum.c[at] + factor * psi.c[at];
                    sum.c[at + 1] = sum.c[at + 1] + factor * psi.c[at + 1];
                }
            }
        };
        add(a.p, a.upper_p, a.lower_p);
        add(a.r, a.upper_r, a.lower_r);
        store_spinor(a.p, g, site, vector, sum);
    }
}

SITE_KERNEL(combine_chiralities, combine_chiralities_site)
