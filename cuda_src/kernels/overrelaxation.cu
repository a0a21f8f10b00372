// Overrelaxation: reflects every link of one direction and parity about its staples, SU(2) subgroup
// by subgroup, which moves it as far as it goes and leaves the action as it is (Creutz, Phys. Rev.
// D 36 (1987) 515; Brown and Woch, Phys. Rev. Lett. 58 (1987) 2394).
#include "../kernel.h"
#include "../staple.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Copies copies;
};

struct Reflection {
    // g = (w^dagger)^2 / |w|^2, so that g w = w^dagger.
    INLINE Quaternion operator()(int, Quaternion w) const {
        w.a[0] = w.a[0] + scalar(REAL_BYTES == 4 ? 1e-18 : 1e-150);  // staples that cancel
        const real s = (w.a[0] + w.a[0]) / w.norm2();
        return {{s * w.a[0] - scalar(1), -s * w.a[1], -s * w.a[2], -s * w.a[3]}};
    }
    INLINE void end() const {}
};

template <bool COPIES> INLINE void overrelaxation_site(const Arguments& a, const Site& site) {
    update_link<GROUP, COPIES>(a.links, a.copies, a.geometry, site, a.work.mu, [] { return Reflection(); });
}

SWEEP_KERNEL(overrelaxation, Arguments, overrelaxation_site)
