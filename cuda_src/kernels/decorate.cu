// One level of HYP smearing (Hasenfratz and Knechtli, hep-lat/0103029). D(mu, S) is the link of direction mu, decorated
// with staples along the directions of the set S:
//   D(mu, {}) = U_mu,
//   D(mu, S) = P[keep U_mu + weight sum over rho in S of the two staples of D(rho, S - rho) around D(mu, S - rho)].
// The links of the level below are in up to three fields, in any order; those of the lowest level are U.
#include "arch/launch.h"
#include "group/group.h"
#include "lattice/staples.h"

// Largest number of links per site that a level decorates.
constexpr int LINKS = 12;

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;               // U
    GROUP::Field below0, below1, below2;
    GROUP::Field target0, target1, target2;
    double keep, weight;
    int count;          // number of links per site to decorate
    int mu[LINKS];      // their directions
    int set[LINKS];     // bit rho: rho is in S; the link is copied if S is empty
    int place[LINKS];   // 4 n + d: stored in the target n as its link of direction d
    int below[4][16];   // [mu][S]: the place of D(mu, S) in the fields of the level below
    int unitary;        // 1: polar projection; 0: projection with the largest trace
};

INLINE GROUP::Field one_of(const GROUP::Field& first, const GROUP::Field& second, const GROUP::Field& third, int n) {
    GROUP::Field field = first;
    if (n == 1) field = second;
    if (n == 2) field = third;
    return field;
}

INLINE void decorate_links(const Arguments& a, const Site& site, int share) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const int even = site.parity;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int place, const Offset& o) {
        const Field field = one_of(a.below0, a.below1, a.below2, place >> 2);
        return GROUP::load(field, g, here + Field::direction(g, parity, place & 3) + o.packets, o.crossing);
    };
    ROLLED
    for (int n = share; n < a.count; n += DIRECTIONS) {
        const int mu = a.mu[n], set = a.set[n];
        GROUP::Link u = GROUP::load(a.links, g, here + Field::direction(g, even, mu));
        if (set) {
            const Offset ahead = Field::step(g, site, mu, true);
            GROUP::Matrix sum = GROUP::zero();
            ROLLED
            for (int rho = 0; rho < 4; rho++) {
                if (!(set >> rho & 1)) continue;
                const int rest = set & ~(1 << rho), side = a.below[rho][rest], along = a.below[mu][rest];
                add_staples(sum, link, g, site, rho, side, along, ahead);
            }
            sum = GROUP::scaled(sum, (scalar)a.weight);
            GROUP::add(sum, GROUP::scaled(GROUP::matrix(u), (scalar)a.keep));
            u = a.unitary ? GROUP::polar(sum) : GROUP::maximal(sum);
        }
        const Field target = one_of(a.target0, a.target1, a.target2, a.place[n] >> 2);
        GROUP::store(target, g, here + Field::direction(g, even, a.place[n] & 3), u);
    }
}

LINK_KERNEL(decorate, decorate_links)
