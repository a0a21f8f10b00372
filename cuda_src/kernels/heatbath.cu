// Heatbath: draws every link of one direction and parity anew from its distribution given all the
// others, exp(beta/N Re Tr U s^dagger): Kennedy and Pendleton, Phys. Lett. 156B (1985) 393, where
// that is peaked, Creutz, Phys. Rev. D 21 (1980) 2308, where it is broad.
#include "../kernel.h"
#include "../staple.h"
#include "../heatbath.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Stream stream;
    double beta_over_n;
};

INLINE void heatbath_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const GROUP::Matrix s = staples<GROUP>(a.links, g, site, a.work.mu);
    const long long here = GROUP::Field::place(g, site);
    const GROUP::Link u = GROUP::load(a.links, g, site.parity, a.work.mu, here, 0);
    Heatbath<RANDOM> heatbath(RANDOM(a.stream, g, site, a.work.mu), (scalar)a.beta_over_n);
    GROUP::store(a.links, g, site.parity, a.work.mu, here, GROUP::update(u, s, heatbath));
    heatbath.random.end();
}

SITE_KERNEL(heatbath, Arguments, heatbath_site)
