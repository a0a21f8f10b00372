// Factors of the planes of an action: the staples of a link in the planes with some direction are multiplied by a factor
// before those of the next direction are added.
#pragma once

#include "lattice/links.h"

// All planes have the same factor, 1.
struct EqualPlanes {
    template <class M> INLINE void enter(M&, int) const {}
    template <class M> INLINE void leave(M&) const {}
};

// Anisotropic actions: planes in space and planes with the direction of time have different factors. The sum is kept in
// units of the factor of the plane at hand, so that no second sum is needed.
template <class G> struct UnequalPlanes {
    const int mu;
    const scalar in_space, along_t;
    bool in_units_of_t;

    INLINE UnequalPlanes(int mu, double in_space, double along_t)
        : mu(mu), in_space((scalar)in_space), along_t((scalar)along_t), in_units_of_t(mu == 3) {}

    // Called before the staples in the plane of mu and nu are added.
    INLINE void enter(typename G::Matrix& sum, int nu) {
        const bool with_t = mu == 3 || nu == 3;
        if (with_t == in_units_of_t) return;
        sum = G::scaled(sum, with_t ? in_space / along_t : along_t / in_space);
        in_units_of_t = with_t;
    }
    // Called when all staples have been added.
    INLINE void leave(typename G::Matrix& sum) const { sum = G::scaled(sum, in_units_of_t ? along_t : in_space); }
};
