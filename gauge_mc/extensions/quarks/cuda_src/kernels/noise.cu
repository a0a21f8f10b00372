// Random vectors eta whose components are independent, with the averages <eta> = 0 and <eta eta^dagger> = 1: roots of unity,
// or normal numbers, whose real and imaginary part have the variance 1/2. Components that are not wanted are 0.
#include "arch/launch.h"
#include "dirac/spinors.h"
#include "random/normal.h"
#include "random/random.h"

constexpr int MOST_ROOTS = 8;

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors vectors;
    Stream stream;
    int vector, roots;                       // no roots: normal numbers
    int spins, colour;                       // bits of the spins that are wanted; the colour, or -1 for all
    double re[MOST_ROOTS], im[MOST_ROOTS];  // the roots of unity
};

INLINE void noise_site(const Arguments& a, const Site& site) {
    RANDOM<SPINOR_REALS + 4> random(a.stream, a.geometry, site, 0);
    Spinor eta;
    random.uniforms(eta.c);
    random.end();
    if (a.roots == 0) to_normal(eta.c);
    UNROLL for (int i = 0; i < SPINOR_REALS; i += 2) {
        const int spin = i / 2 % SPINS, colour = i / 2 / SPINS;
        const bool wanted = (a.spins >> spin & 1) && (a.colour < 0 || a.colour == colour);
        real re = scalar(0x1.6a09e667f3bcdp-1) * eta.c[i], im = scalar(0x1.6a09e667f3bcdp-1) * eta.c[i + 1];
        ROLLED
        for (int n = 0; n < a.roots; n++) {  // eta is root n if the number is from n / roots to (n + 1) / roots
            const mask from = eta.c[i] >= broadcast((scalar)n / (scalar)a.roots);
            re = select(from, broadcast((scalar)a.re[n]), re), im = select(from, broadcast((scalar)a.im[n]), im);
        }
        eta.c[i] = wanted ? re : broadcast(0), eta.c[i + 1] = wanted ? im : broadcast(0);
    }
    store_spinor(a.vectors, a.geometry, site, a.vector, eta);
}

SITE_KERNEL(noise, noise_site)
