// Heatbath: draws every link of one direction and parity anew from its distribution given all the
// others, exp(beta/N Re Tr U s^dagger): Creutz, Phys. Rev. D 21 (1980) 2308; Kennedy and Pendleton,
// Phys. Lett. 156B (1985) 393, with another proposal.
#include "../kernel.h"
#include "../staple.h"
#include "../heatbath.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Copies copies;
    Stream stream;
    double beta_over_n;
};

template <bool COPIES> INLINE void heatbath_site(const Arguments& a, const Site& site) {
    update_link<GROUP, COPIES>(a.links, a.copies, a.geometry, site, a.work.mu, [&] {
        constexpr int SUBGROUPS = GROUP::N * (GROUP::N - 1) / 2;
        return Heatbath<RANDOM, SUBGROUPS>(a.stream, a.geometry, site, a.work.mu, (scalar)a.beta_over_n);
    });
}

SWEEP_KERNEL(heatbath, Arguments, heatbath_site)
