// The Wilson action, beta sum over plaquettes of (1 - Re Tr U_p / N). The staples around U_mu(x) are
//   s = sum over nu != mu of  U_nu(x) U_mu(x+nu) U_nu(x+mu)^dagger
//                           + U_nu(x-nu)^dagger U_mu(x-nu) U_nu(x-nu+mu).
#pragma once

#include "action/planes.h"
#include "lattice/links.h"

struct Wilson {
    struct Coefficients {
        double beta_over_n;  // beta / N
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)c.beta_over_n; }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients&) {
        return sum_over_planes<G, UNROLLED>(links, g, site, mu, EqualPlanes());
    }

    // On a GPU the loop over directions is not unrolled, so that it fits in the instruction cache. The
    // exceptions are SU(2), whose code is short, and few threads, which must load much at once (UNROLLED).
    template <class G, bool UNROLLED, class PLANES>
    static INLINE typename G::Matrix sum_over_planes(const typename G::Field& links, const Geometry& g,
                                                     const Site& site, int mu, PLANES planes) {
        typedef typename G::Field Field;
        Around a = around<Field>(g, site, mu);
        const packet_index even = Field::place(g, site) + Field::direction(g, site.parity, 0);
        const packet_index odd = Field::place(g, site) + Field::direction(g, 1 - site.parity, 0);
        const packet_index odd_mu = odd + Field::direction(g, 0, mu);
        auto link = [&](packet_index first, const Offset& o) {
            return G::load(links, g, first + o.packets, o.crossing);
        };

        typename G::Matrix sum = G::zero();
        UNROLL_IF(G::N == 2 || UNROLLED) for (int k = 0; k < 3; k++, a.rotate()) {
            planes.enter(sum, (mu + k + 1) & 3);
            const packet_index even_nu = even + a.direction[0], odd_nu = odd + a.direction[0];
            G::add_upper(sum, G::load(links, g, even_nu), link(odd_mu, a.up[0]), link(odd_nu, a.ahead));
            G::add_lower(sum, link(odd_nu, a.down[0]), link(odd_mu, a.down[0]), link(even_nu, a.down[0] + a.ahead));
        }
        planes.leave(sum);
        return sum;
    }

private:
    // Offsets to the links around a link of direction mu, for each of the three other directions.
    struct Around {
        Offset ahead, up[3], down[3];
        packet_index direction[3];

        // If mu is known at compile time, there is little to compute.
        template <class Field, int MU> INLINE void find(const Geometry& g, const Site& site) {
            ahead = Field::step(g, site, MU, true);
            UNROLL for (int k = 0; k < 3; k++) {
                const int nu = (MU + k + 1) & 3;
                up[k] = Field::step(g, site, nu, true);
                down[k] = Field::step(g, site, nu, false);
                direction[k] = Field::direction(g, 0, nu);
            }
        }

        // Move the next direction to the front, because registers cannot be indexed by a loop counter.
        INLINE void rotate() {
            UNROLL for (int k = 0; k < 2; k++) {
                up[k] = up[k + 1], down[k] = down[k + 1], direction[k] = direction[k + 1];
            }
        }
    };

    template <class Field> static INLINE Around around(const Geometry& g, const Site& site, int mu) {
        Around a;
        if (mu == 0) a.template find<Field, 0>(g, site);
        else if (mu == 1) a.template find<Field, 1>(g, site);
        else if (mu == 2) a.template find<Field, 2>(g, site);
        else a.template find<Field, 3>(g, site);
        return a;
    }
};
