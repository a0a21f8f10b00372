// The anisotropic Wilson action,
//   beta (1/xi0 sum over plaquettes in space of (1 - Re Tr U_p / N) + xi0 sum over those with links along t).
#pragma once

#include "action/wilson.h"

struct AnisotropicWilson {
    struct Coefficients {
        double beta_over_n;        // beta / N
        double in_space, along_t;  // 1 / xi0 and xi0
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)c.beta_over_n; }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients& c) {
        const UnequalPlanes<G> planes(mu, c.in_space, c.along_t);
        return Wilson::sum_over_planes<G, UNROLLED>(links, g, site, mu, planes);
    }
};
