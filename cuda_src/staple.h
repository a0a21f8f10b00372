// The sum of the six staples around a link, as the matrix s for which the link's part of the action
// is -beta/N Re Tr (U s^dagger):
//   s = sum over nu != mu of  U_nu(x) U_mu(x+nu) U_nu(x+mu)^dagger
//                           + U_nu(x-nu)^dagger U_mu(x-nu) U_nu(x-nu+mu).
#pragma once

#include "su3.h"

template <class G, int MU>
INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site) {
    typedef typename G::Field Field;
    const int even = site.parity, odd = 1 - even;
    const piece_index here = Field::place(g, site);
    const Offset ahead = Field::step(g, site, MU, true);
    auto link = [&](int parity, int direction, const Offset& o) {
        return G::load(links, g, parity, direction, here + o.pieces, o.turn);
    };
    typename G::Matrix sum = G::zero();
    UNROLL for (int k = 1; k < 4; k++) {
        const int nu = (MU + k) & 3;
        const Offset up = Field::step(g, site, nu, true), down = Field::step(g, site, nu, false);
        G::add_upper(sum, link(even, nu, {0, 0}), link(odd, MU, up), link(odd, nu, ahead));
        G::add_lower(sum, link(odd, nu, down), link(odd, MU, down), link(even, nu, down + ahead));
    }
    return sum;
}

// Updates the link of direction MU at a site by G::update with choose().
template <class G, int MU, class Choose>
INLINE void update_link(const typename G::Field& links, const Geometry& g, const Site& site, Choose& choose) {
    const typename G::Matrix s = staples<G, MU>(links, g, site);
    const piece_index here = G::Field::place(g, site);
    const typename G::Link u = G::load(links, g, site.parity, MU, here, 0);
    G::store(links, g, site.parity, MU, here, G::update(u, s, choose));
}

// The same for a direction known at run time: compiled for each, since addresses then cost less.
template <class G, class Choose>
INLINE void update_link(int mu, const typename G::Field& links, const Geometry& g, const Site& site, Choose& choose) {
    switch (mu) {
        case 0: return update_link<G, 0>(links, g, site, choose);
        case 1: return update_link<G, 1>(links, g, site, choose);
        case 2: return update_link<G, 2>(links, g, site, choose);
        case 3: return update_link<G, 3>(links, g, site, choose);
    }
}
