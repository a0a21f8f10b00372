// Sums of Re Tr U_mu(x) U_nu(x+mu) U_mu(x+nu)^dagger U_nu(x)^dagger over the spatial and over the
// temporal planes.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    double* sums;
};

INLINE void plaquette_site(const Arguments& a, const Site& site, real (&values)[2]) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const int even = site.parity, odd = 1 - even;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.links, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    real spatial = broadcast(0), temporal = broadcast(0);
    ROLLED
    for (int plane = 0; plane < 6; plane++) {
        const int mu = plane < 3 ? plane >> 1 : plane - 3, nu = plane < 3 ? (plane + 3) >> 1 : 3;
        const Offset ahead = Field::step(g, site, mu, true), up = Field::step(g, site, nu, true);
        const real value = GROUP::plaquette(link(even, mu, {0, 0}), link(odd, nu, ahead),
                                            link(odd, mu, up), link(even, nu, {0, 0}));
        if (plane < 3) spatial = spatial + value;
        else temporal = temporal + value;
    }
    values[0] = spatial;
    values[1] = temporal;
}

SUM_KERNEL(plaquette, 2, plaquette_site)
