// Heatbath: draw every link of one direction and parity from its conditional distribution, given all
// other links, exp(weight Re Tr U s^dagger) (Creutz, Phys. Rev. D 21 (1980) 2308).
#include "arch/launch.h"
#include "update/heatbath.h"
#include "update/link.h"
#include "update/replicas.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    HaloTargets halo;
    Stream stream;
    ACTION::Coefficients action;
    // Of every replica, or null: [replica][KEY_WORDS] and [replica].
    const unsigned* keys;
    const ACTION::Coefficients* actions;
};

template <bool STORES_HALO> INLINE void heatbath_site(const Arguments& a, const Site& site) {
    const ACTION::Coefficients& action = REPLICAS::action(a, site);
    update_link<Arguments, STORES_HALO>(a, action, site, [&] {
        constexpr int SUBGROUPS = GROUP::N * (GROUP::N - 1) / 2;
        return HeatbathChoice<RANDOM, SUBGROUPS>(REPLICAS::stream(a, site), a.geometry, site, a.work.mu,
                                                 ACTION::weight(action));
    });
}

SWEEP_KERNEL(heatbath, heatbath_site)
