// Sums of Re Tr of the rectangles whose long sides are the links before and after a site: in space, with the long side
// in space and the short one along t, and with the long side along t.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    double* sums;
};

// U_mu(x-mu) U_mu(x) U_nu(x+mu) U_mu(x+nu)^dagger U_mu(x-mu+nu)^dagger U_nu(x-mu)^dagger.
INLINE void rectangles_site(const Arguments& a, const Site& site, real (&values)[3]) {
    typedef GROUP::Field Field;
    typedef GROUP::Link Link;
    const Geometry& g = a.geometry;
    const int even = site.parity, odd = 1 - even;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.links, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    auto product = [](const Link& u, const Link& v) { return GROUP::link(GROUP::multiply(GROUP::matrix(u), v)); };
    real space = broadcast(0), wide = broadcast(0), tall = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const Offset back = Field::step(g, site, mu, false), ahead = Field::step(g, site, mu, true);
        const Link side = product(link(odd, mu, back), link(even, mu, {0, 0}));
        ROLLED
        for (int k = 1; k < 4; k++) {
            const int nu = (mu + k) & 3;
            const Offset up = Field::step(g, site, nu, true);
            const Link other = product(link(even, mu, back + up), link(odd, mu, up));
            const real value = GROUP::plaquette(side, link(odd, nu, ahead), other, link(odd, nu, back));
            if (mu == 3) tall = tall + value;
            else if (nu == 3) wide = wide + value;
            else space = space + value;
        }
    }
    values[0] = space;
    values[1] = wide;
    values[2] = tall;
}

SUM_KERNEL(rectangles, 3, rectangles_site)
