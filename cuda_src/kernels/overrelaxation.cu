// Overrelaxation: reflect every link of one direction and parity about its staples, in one SU(2) subgroup
// after the other. This moves the link as far as possible and leaves the action unchanged (Creutz, Phys. Rev. D 36
// (1987) 515; Brown and Woch, Phys. Rev. Lett. 58 (1987) 2394).
#include "arch/launch.h"
#include "update/colours.h"
#include "update/link.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    HaloTargets halo;
    ACTION::Coefficients action;
    // Of every replica, or null if they are the same.
    const ACTION::Coefficients* actions;
};

struct Reflection {
    // g = (w^dagger)^2 / |w|^2, so that g w = w^dagger.
    INLINE Quaternion operator()(int, Quaternion w) const {
        w.a[0] = w.a[0] + NEVER_ZERO;
        const real s = (w.a[0] + w.a[0]) / w.norm2();
        return {{s * w.a[0] - scalar(1), -s * w.a[1], -s * w.a[2], -s * w.a[3]}};
    }
    INLINE void end() const {}
};

template <bool STORES_HALO> INLINE void overrelaxation_site(const Arguments& a, const Site& site) {
    ACTION::Coefficients action = a.action;
    if (a.actions) action = in_memory(a.actions + site.replica);
    auto update = [&](const Site& s, mask lanes) {
        update_link<Arguments, STORES_HALO>(a, action, s, lanes, [] { return Reflection(); });
    };
    if constexpr (COLOURING::COLOURS > 0) for_colour(a, site, update);
    else update(site, everywhere(true));
}

SWEEP_KERNEL(overrelaxation, overrelaxation_site)
