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
    update_link<GROUP>(a.links, a.geometry, site, a.work.mu, [&] {
        constexpr int SUBGROUPS = GROUP::N * (GROUP::N - 1) / 2;
        return Heatbath<RANDOM, SUBGROUPS>(a.stream, a.geometry, site, a.work.mu, (scalar)a.beta_over_n);
    });
}

SWEEP_KERNEL(heatbath, Arguments, heatbath_site)
