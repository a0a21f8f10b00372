// APE smearing (Albanese et al., Phys. Lett. B 192 (1987) 163): U -> P[U + w sum of staples]. The result is stored in
// another field, to which the links of the other directions are copied.
#include "arch/launch.h"
#include "group/group.h"
#include "lattice/staples.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
    double weight;
    int directions;  // bit mu: links of direction mu are smeared
    int staples;     // bit nu: staples extend along direction nu
    int unitary;  // 1: polar projection; 0: projection with the largest trace
};

INLINE void ape_link(const Arguments& a, const Site& site, int mu) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const int even = site.parity;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.source, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    const packet_index place = here + Field::direction(g, even, mu);
    if (!(a.directions >> mu & 1)) {
        GROUP::store(a.target, g, place, link(even, mu, {0, 0}));
        return;
    }
    const Offset ahead = Field::step(g, site, mu, true);
    GROUP::Matrix sum = GROUP::zero();
    ROLLED
    for (int nu = 0; nu < 4; nu++) {
        if (nu == mu || !(a.staples >> nu & 1)) continue;
        add_staples(sum, link, g, site, nu, nu, mu, ahead);
    }
    sum = GROUP::scaled(sum, (scalar)a.weight);
    GROUP::add(sum, GROUP::matrix(link(even, mu, {0, 0})));
    const GROUP::Link u = a.unitary ? GROUP::polar(sum) : GROUP::maximal(sum);
    GROUP::store(a.target, g, place, u);
}

LINK_KERNEL(ape, ape_link)
