// Anisotropic actions with plaquettes and 2x1 rectangles: the loops in space are multiplied by 1/xi0, and all loops with
// links along t by xi0, with the same c0 and c1 as for the isotropic action.
#pragma once

#include "action/rectangles.h"

struct AnisotropicRectangles {
    struct Coefficients {
        double beta_over_n;  // beta / N
        double c0, c1;
        double in_space, along_t;  // 1 / xi0 and xi0
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)c.beta_over_n; }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients& c) {
        const UnequalPlanes<G> planes(mu, c.c0 * c.in_space, c.c0 * c.along_t);
        return Rectangles::sum_over_planes<G>(links, g, site, mu, c.c1 / c.c0, planes);
    }
};
