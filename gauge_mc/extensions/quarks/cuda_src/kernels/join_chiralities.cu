// Set a vector to the upper components of one vector of another field, and the lower components of another one; a number
// below 0 stands for the vector 0.
#include "arch/launch.h"
#include "dirac/spinors.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors target, source;
    int to, up, down;  // numbers of vectors
};

INLINE void join_chiralities_site(const Arguments& a, const Site& site) {
    Spinor joined;
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) joined.c[i] = broadcast(0);
    UNROLL for (int chirality = 0; chirality < 2; chirality++) {
        const int from = chirality == 0 ? a.up : a.down;
        if (from < 0) continue;
        const Spinor psi = load_spinor(a.source, a.geometry, site, from);
        UNROLL for (int spin = 2 * chirality; spin < 2 * chirality + 2; spin++)
            UNROLL for (int colour = 0; colour < GROUP::N; colour++) {
                const int at = component(spin, colour);
                joined.c[at] = psi.c[at], joined.c[at + 1] = psi.c[at + 1];
            }
    }
    store_spinor(a.target, a.geometry, site, a.to, joined);
}

SITE_KERNEL(join_chiralities, join_chiralities_site)
