// The sum of the six staples around a link, as the matrix s for which the link's part of the action
// is -beta/N Re Tr (U s^dagger):
//   s = sum over nu != mu of  U_nu(x) U_mu(x+nu) U_nu(x+mu)^dagger
//                           + U_nu(x-nu)^dagger U_mu(x-nu) U_nu(x-nu+mu).
#pragma once

#include "su3.h"

// On a GPU a loop of few instructions stays in the instruction cache. SU(2) has few without it, and
// there compiling each direction by itself leaves fewer addresses to compute. WHOLE: no loop, so that
// the few threads of a small lattice load more at once.
#if defined(__CUDACC__)
#define STAPLE_LOOP _Pragma("unroll (G::N == 2 || WHOLE ? 3 : 1)")
#define EACH_DIRECTION (G::N == 2)
#else
#define STAPLE_LOOP UNROLL
#define EACH_DIRECTION false
#endif

// Where the links around those of direction mu are: one set of offsets for each of the others.
struct Around {
    Offset ahead, up[3], down[3];
    piece_index direction[3];

    // For mu known to the compiler, which leaves little to compute.
    template <class Field, int MU> INLINE void find(const Geometry& g, const Site& site) {
        ahead = Field::step(g, site, MU, true);
        UNROLL for (int k = 0; k < 3; k++) {
            const int nu = (MU + k + 1) & 3;
            up[k] = Field::step(g, site, nu, true);
            down[k] = Field::step(g, site, nu, false);
            direction[k] = Field::direction(g, 0, nu);
        }
    }

    // The next direction comes first. Registers have no run-time index, so they are passed on.
    INLINE void rotate() {
        UNROLL for (int k = 0; k < 2; k++) {
            up[k] = up[k + 1], down[k] = down[k + 1], direction[k] = direction[k + 1];
        }
    }
};

template <class Field> INLINE Around around(const Geometry& g, const Site& site, int mu) {
    Around a;
    if (mu == 0) a.find<Field, 0>(g, site);
    else if (mu == 1) a.find<Field, 1>(g, site);
    else if (mu == 2) a.find<Field, 2>(g, site);
    else a.find<Field, 3>(g, site);
    return a;
}

template <class G, bool WHOLE>
INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site, int mu) {
    typedef typename G::Field Field;
    Around a = around<Field>(g, site, mu);
    const piece_index even = Field::place(g, site) + Field::direction(g, site.parity, 0);
    const piece_index odd = Field::place(g, site) + Field::direction(g, 1 - site.parity, 0);
    const piece_index odd_mu = odd + Field::direction(g, 0, mu);
    auto link = [&](piece_index first, const Offset& o) { return G::load(links, g, first + o.pieces, o.turn); };

    typename G::Matrix sum = G::zero();
    STAPLE_LOOP for (int k = 0; k < 3; k++, a.rotate()) {
        const piece_index even_nu = even + a.direction[0], odd_nu = odd + a.direction[0];
        G::add_upper(sum, G::load(links, g, even_nu), link(odd_mu, a.up[0]), link(odd_nu, a.ahead));
        G::add_lower(sum, link(odd_nu, a.down[0]), link(odd_mu, a.down[0]), link(even_nu, a.down[0] + a.ahead));
    }
    return sum;
}

// Stores a link, and the copies that neighbours have of it if so wanted.
template <class G, bool COPIES>
INLINE void store_link(const typename G::Field& links, const Copies& copies, const Geometry& g, const Site& site,
                       piece_index here, const typename G::Link& u) {
    G::store(links, g, here, u);
    if constexpr (COPIES) {
        typedef typename G::Field::piece piece;
        if (copies.first && site.t == 0) G::store({(piece*)copies.first}, g, here, u);
        if (copies.last && site.t == copies.last_t) G::store({(piece*)copies.last}, g, here, u);
    }
}

// Updates a link by G::update with make()'s choice, made when the staples no longer fill registers.
template <class G, bool COPIES, class Make>
INLINE void update_one(const typename G::Field& links, const Copies& copies, const Geometry& g, const Site& site,
                       int mu, Make make) {
    // Without copies it is a sweep in one launch.
    const typename G::Matrix s = staples<G, !COPIES>(links, g, site, mu);
    const piece_index here = G::Field::place(g, site) + G::Field::direction(g, site.parity, mu);
    const typename G::Link u = G::load(links, g, here);
    auto choose = make();
    store_link<G, COPIES>(links, copies, g, site, here, G::update(u, s, choose));
    choose.end();
}

template <class G, bool COPIES, class Make>
INLINE void update_link(const typename G::Field& links, const Copies& copies, const Geometry& g, const Site& site,
                        int mu, Make make) {
    if constexpr (EACH_DIRECTION) {
        if (mu == 0) update_one<G, COPIES>(links, copies, g, site, 0, make);
        else if (mu == 1) update_one<G, COPIES>(links, copies, g, site, 1, make);
        else if (mu == 2) update_one<G, COPIES>(links, copies, g, site, 2, make);
        else update_one<G, COPIES>(links, copies, g, site, 3, make);
    } else {
        update_one<G, COPIES>(links, copies, g, site, mu, make);
    }
}
