// The electric or the magnetic field of every site: F_i3 or F_jk (i, j, k cyclic) of the clover,
//   F_mu_nu(x) = P(sum of the four plaquettes around x) / 4,
// where P is the traceless antihermitian part. It is stored as directions 0, 1 and 2 of a field of algebra elements.
#include "arch/launch.h"
#include "lattice/clover.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField strength;
    int magnetic;
};

INLINE void colour_fields_site(const Arguments& a, const Site& site) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    ROLLED
    for (int i = 0; i < 3; i++) {
        const int mu = a.magnetic ? (i == 2 ? 0 : i + 1) : i, nu = a.magnetic ? (i == 0 ? 2 : i - 1) : 3;
        real plaquette;
        auto traceless = [](const GROUP::Matrix& m) { return GROUP::traceless(m); };
        const GROUP::Algebra f = clover_of(a.links, g, site, mu, nu, traceless, plaquette);
        a.strength.store(g, AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, i), scalar(0.25) * f);
    }
}

SITE_KERNEL(colour_fields, colour_fields_site)
