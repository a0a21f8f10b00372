// The sum of the six staples around a link, as the matrix s for which the link's part of the action
// is -beta/N Re Tr (U s^dagger):
//   s = sum over nu != mu of  U_nu(x) U_mu(x+nu) U_nu(x+mu)^dagger
//                           + U_nu(x-nu)^dagger U_mu(x-nu) U_nu(x-nu+mu).
#pragma once

#include "su3.h"

template <class G>
INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site, int mu) {
    typedef typename G::Field Field;
    const int even = site.parity, odd = 1 - even;
    const long long here = Field::place(g, site);
    const Offset ahead = Field::step(g, site, mu, true);
    auto link = [&](int parity, int direction, const Offset& o) {
        return G::load(links, g, parity, direction, here + o.pieces, o.turn);
    };
    typename G::Matrix sum = G::zero();
    ROLLED
    for (int k = 1; k < 4; k++) {
        const int nu = (mu + k) & 3;
        const Offset up = Field::step(g, site, nu, true), down = Field::step(g, site, nu, false);
        G::add_upper(sum, link(even, nu, {0, 0}), link(odd, mu, up), link(odd, nu, ahead));
        G::add_lower(sum, link(odd, nu, down), link(odd, mu, down), link(even, nu, down + ahead));
    }
    return sum;
}
