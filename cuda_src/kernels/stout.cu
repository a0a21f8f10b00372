// Stout smearing (Morningstar and Peardon, hep-lat/0311018): U -> exp(rho P[C U^dagger]) U, where C is the sum of the
// staples and P the traceless antihermitian part. The result is stored in another field, to which the links of the other
// directions are copied.
#include "arch/launch.h"
#include "group/group.h"
#include "lattice/staples.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
    double rho;
    int directions;  // bit mu: links of direction mu are smeared, by staples along the other such directions
    int factors;     // the exponential is the product of so many equal factors, each of a small matrix
};

INLINE void stout_link(const Arguments& a, const Site& site, int mu) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const int even = site.parity;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.source, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    GROUP::Link u = link(even, mu, {0, 0});
    if (a.directions >> mu & 1) {
        const Offset ahead = Field::step(g, site, mu, true);
        GROUP::Matrix sum = GROUP::zero();
        ROLLED
        for (int nu = 0; nu < 4; nu++) {
            if (nu == mu || !(a.directions >> nu & 1)) continue;
            add_staples(sum, link, g, site, nu, nu, mu, ahead);
        }
        const scalar factor = (scalar)(a.rho / a.factors);
        const GROUP::Algebra x = factor * GROUP::traceless(GROUP::multiply_adjoint(sum, u));
        ROLLED
        for (int n = 0; n < a.factors; n++) u = GROUP::exponential_times(x, u);
        u = GROUP::normalised(u);
    }
    GROUP::store(a.target, g, here + Field::direction(g, even, mu), u);
}

LINK_KERNEL(stout, stout_link)
