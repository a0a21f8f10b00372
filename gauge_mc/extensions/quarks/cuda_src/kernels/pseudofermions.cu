// Normal random vectors on the sites of one parity, with the weight exp(-eta^dagger eta): the real and imaginary part of
// every component has the variance 1/2. Counter-based generators draw them from a sub-stream that nothing else uses.
#include "arch/launch.h"
#include "dirac/spinors.h"
#include "random/normal.h"
#include "random/random.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors vectors;
    Stream stream;
    int vector, substream;
};

INLINE void pseudofermions_site(const Arguments& a, const Site& site) {
    // RANLUX reserves four numbers more than are drawn.
    RANDOM<SPINOR_REALS + 4> random(a.stream, a.geometry, site, 0);
    random.begin(a.substream);
    Spinor eta;
    random.uniforms(eta.c);
    random.end();
    to_normal(eta.c);
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) eta.c[i] = scalar(0x1.6a09e667f3bcdp-1) * eta.c[i];
    store_spinor(a.vectors, a.geometry, site, a.vector, eta);
}

SITE_KERNEL(pseudofermions, pseudofermions_site)
