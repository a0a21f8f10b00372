// Actions with plaquettes and 2x1 rectangles,
//   beta (c0 sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over rectangles of (1 - Re Tr U_r / N)).
// The staples are c0 times those of the Wilson action plus c1 times the six around each side of a link in every plane.
#pragma once

#include "action/planes.h"
#include "lattice/links.h"

struct Rectangles {
    struct Coefficients {
        double beta_over_n;  // beta / N
        double c0, c1;
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)c.beta_over_n; }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients& c) {
        return G::scaled(sum_over_planes<G>(links, g, site, mu, c.c1 / c.c0, EqualPlanes()), (scalar)c.c0);
    }

    // The sum in units of c0, given r = c1 / c0.
    template <class G, class PLANES>
    static INLINE typename G::Matrix sum_over_planes(const typename G::Field& links, const Geometry& g,
                                                     const Site& site, int mu, double r, PLANES planes) {
        typename G::Matrix sum = G::zero();
        ROLLED
        for (int k = 1; k < 4; k++) {
            const int nu = (mu + k) & 3;
            planes.enter(sum, nu);
            ROLLED
            for (int side = 0; side < 2; side++) add_side<G>(sum, links, g, site, mu, nu, side == 1, (scalar)r);
        }
        planes.leave(sum);
        return sum;
    }

private:
    // Add the plaquette and the rectangles on one side of U_mu(x), that of nu or, if `down`, that of -nu. With V(y) the
    // transporter from y to y + nu (or y - nu), U' = U_mu(x+nu) and r = c1 / c0 they are
    //   (V(x) U' + r A U' + r V(x) T) V(x+mu)^+ + r V(x) U' B,
    //   A = U_mu(x-mu)^+ V(x-mu) U_mu(x-mu+nu),  T = V(x+nu) U_mu(x+2nu) V(x+mu+nu)^+,
    //   B = U_mu(x+mu+nu) V(x+2mu)^+ U_mu(x+mu)^+.
    template <class G>
    static INLINE void add_side(typename G::Matrix& sum, const typename G::Field& links, const Geometry& g,
                                const Site& site, int mu, int nu, bool down, scalar r) {
        typedef typename G::Link Link;
        typedef typename G::Field Field;
        const packet_index place = Field::place(g, site);
        const Offset one = Field::steps(g, site, nu, down ? -1 : 1), two = Field::steps(g, site, nu, down ? -2 : 2);
        const Offset back = Field::steps(g, site, mu, -1), ahead = Field::steps(g, site, mu, 1);
        const Offset far = Field::steps(g, site, mu, 2), here = {0, 0};
        auto link = [&](int d, int steps, const Offset& o) {
            const packet_index first = place + Field::direction(g, (site.parity + steps) & 1, d);
            return G::load(links, g, first + o.packets, o.crossing);
        };
        // V at x + i mu, and at x + i mu + nu; `by` is the offset of i mu.
        auto v = [&](int i, const Offset& by, bool next) {
            const Offset first = down ? one : here, second = down ? two : one;
            const Link u = link(nu, i + next + down, by + (next ? second : first));
            return down ? G::link(G::adjoint(G::matrix(u))) : u;
        };
        auto times = [](const Link& a, const Link& b) { return G::link(G::multiply(G::matrix(a), b)); };
        auto times_adjoint = [](const Link& a, const Link& b) { return G::link(G::multiply_adjoint(G::matrix(a), b)); };
        auto add = [&](typename G::Matrix& to, const Link& a) { G::add(to, G::scaled(G::matrix(a), r)); };

        const Link near = v(0, here, false), top = link(mu, 1, one), corner = times(near, top);
        typename G::Matrix begin = G::matrix(corner);
        const Link below = times(v(-1, back, false), link(mu, 0, back + one));
        add(begin, times(G::link(G::adjoint_times(link(mu, -1, back), G::matrix(below))), top));
        const Link above = times(v(0, here, true), link(mu, 2, two));
        add(begin, times(near, times_adjoint(above, v(1, ahead, true))));
        G::add(sum, G::multiply_adjoint(begin, v(1, ahead, false)));
        const Link beyond = times_adjoint(link(mu, 2, ahead + one), v(2, far, false));
        add(sum, times(corner, times_adjoint(beyond, link(mu, 1, ahead))));
    }
};
