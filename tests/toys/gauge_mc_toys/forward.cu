// Smearing of the spatial links with forward staples: U -> P[U + w sum of the forward staples].
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
    double weight;
};

INLINE void forward_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const int even = site.parity, odd = 1 - even;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.source, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    for (int mu = 0; mu < 4; mu++) {
        GROUP::Matrix sum = GROUP::zero();
        for (int nu = 0; mu < 3 && nu < 3; nu++) {
            if (nu == mu) continue;
            const Offset ahead = Field::step(g, site, mu, true), up = Field::step(g, site, nu, true);
            GROUP::add_upper(sum, link(even, nu, {0, 0}), link(odd, mu, up), link(odd, nu, ahead));
        }
        sum = GROUP::scaled(sum, (scalar)a.weight);
        GROUP::add(sum, GROUP::matrix(link(even, mu, {0, 0})));
        GROUP::store(a.target, g, here + Field::direction(g, even, mu), GROUP::maximal(sum));
    }
}

SITE_KERNEL(forward, forward_site)
