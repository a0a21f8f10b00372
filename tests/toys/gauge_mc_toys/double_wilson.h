// Twice the Wilson action, or another multiple: the same staples with another weight.
#pragma once

#include "action/wilson.h"

struct DoubleWilson {
    struct Coefficients {
        double beta, colours;
        double strength;
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)(c.strength * c.beta / c.colours); }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients&) {
        return Wilson::staples<G, UNROLLED>(links, g, site, mu, {});
    }
};
