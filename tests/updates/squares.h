// Loops of 2x2 links, whose links in one direction have up to two steps in two directions between them.
#pragma once

#include "lattice/paths.h"

struct Squares {
    struct Coefficients {
        double beta_over_n;
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)c.beta_over_n; }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients&) {
        typedef typename G::Link Link;
        typedef typename G::Field Field;
        const Paths<G> paths(links, g, site);
        const Offset ahead = Field::steps(g, site, mu, 1);
        typename G::Matrix sum = G::zero();
        ROLLED
        for (int n = 0; n < 12; n++) {
            const int nu = (mu + 1 + n % 3) & 3;
            const bool down = n / 3 % 2, second = n / 6;  // U_mu(x) is the second link of its side
            const Offset one = Field::steps(g, site, nu, down ? -1 : 1), two = Field::steps(g, site, nu, down ? -2 : 2);
            const Offset begin = second ? Field::steps(g, site, mu, -1) : Offset{0, 0};
            const Offset middle = second ? Offset{0, 0} : ahead, end = second ? ahead : Field::steps(g, site, mu, 2);
            auto up = [&](const Offset& from, int steps) {
                const Link u = paths.link(nu, steps + down, from + (down ? one : Offset{0, 0}));
                const Link v = paths.link(nu, steps + 1 + down, from + (down ? two : one));
                auto turned = [&](const Link& w) { return down ? G::link(G::adjoint(G::matrix(w))) : w; };
                return paths.times(turned(u), turned(v));
            };
            const Link far = paths.times(paths.link(mu, second, begin + two), paths.link(mu, 1 + second, middle + two));
            Link path = G::link(G::multiply_adjoint(G::matrix(paths.times(up(begin, second), far)), up(end, second)));
            if (second) path = G::link(G::adjoint_times(paths.link(mu, 1, begin), G::matrix(path)));
            else path = G::link(G::multiply_adjoint(G::matrix(path), paths.link(mu, 1, ahead)));
            G::add(sum, G::matrix(path));
        }
        return sum;
    }
};
