// Heatbath: draw every link of one direction and parity from its conditional distribution, given all
// other links, exp(weight Re Tr U s^dagger) (Creutz, Phys. Rev. D 21 (1980) 2308).
#include "arch/launch.h"
#include "action/action.h"
#include "random/random.h"
#include "update/colours.h"
#include "update/law.h"
#include "update/link.h"
#include "update/other_states.h"
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

template <bool STORES_HALO> INLINE void update(const Arguments& a, const Site& site, mask lanes) {
    const ACTION::Coefficients& action = REPLICAS::action(a, site);
    update_link<Arguments, STORES_HALO>(a, action, site, lanes, [&] {
        return LAW::Choice<RANDOM>(REPLICAS::stream(a, site), a.geometry, site, a.work.mu, ACTION::weight(action));
    });
}

template <bool STORES_HALO> INLINE void heatbath_site(const Arguments& a, const Site& site) {
    if constexpr (COLOURING::COLOURS == 0) {
        update<STORES_HALO>(a, site, everywhere(true));
    } else {
        for_colour(a, site, [&](const Site& s, mask lanes) {
            constexpr int WORDS = RANDOM<1>::STATE_WORDS;
            OtherStates<WORDS, (WORDS > 0 && LANES > 1)> others(REPLICAS::stream(a, s), a.geometry, s, lanes);
            update<STORES_HALO>(a, s, lanes);
            others.restore();
        });
    }
}

SWEEP_KERNEL(heatbath, heatbath_site)
