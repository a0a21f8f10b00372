// Actions with plaquettes and 2x1 rectangles,
//   beta (c0 sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over rectangles of (1 - Re Tr U_r / N)).
// The staples are c0 times those of the Wilson action plus c1 times the six around each side of a link in every plane.
#pragma once

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
        typename G::Matrix sum = G::zero();
        ROLLED
        for (int k = 1; k < 4; k++) {
            // One rectangle at a time, which needs fewer registers.
            ROLLED
            for (int which = 0; which < 6; which++) add_rectangle<G>(sum, {links, g, site, mu, (mu + k) & 3}, which);
        }
        sum = G::scaled(sum, (scalar)(c.c1 / c.c0));
        ROLLED
        for (int k = 1; k < 4; k++) {
            const Around<G> link = {links, g, site, mu, (mu + k) & 3};
            G::add_upper(sum, link.nu_at(0, 0), link.mu_at(0, 1), link.nu_at(1, 0));
            G::add_lower(sum, link.nu_at(0, -1), link.mu_at(0, -1), link.nu_at(1, -1));
        }
        return G::scaled(sum, (scalar)c.c0);
    }

private:
    // The links near a site in the plane of mu and nu: those of either direction at x + i mu + j nu.
    template <class G> struct Around {
        const typename G::Field& links;
        const Geometry& g;
        const Site& site;
        int mu, nu;

        INLINE typename G::Link at(int d, int i, int j) const {
            typedef typename G::Field Field;
            const Offset o = Field::steps(g, site, mu, i) + Field::steps(g, site, nu, j);
            const int parity = (site.parity + i + j) & 1;
            return G::load(links, g, Field::place(g, site) + Field::direction(g, parity, d) + o.packets, o.crossing);
        }
        INLINE typename G::Link mu_at(int i, int j) const { return at(mu, i, j); }
        INLINE typename G::Link nu_at(int i, int j) const { return at(nu, i, j); }
    };

    // The six rectangles above and below U_mu(x): long in direction nu, or long in direction mu with the link at the
    // beginning or at the end of the long side.
    template <class G> static INLINE void add_rectangle(typename G::Matrix& sum, const Around<G>& l, int which) {
        typedef typename G::Link Link;
        auto times = [](const Link& a, const Link& b) { return G::link(G::multiply(G::matrix(a), b)); };
        auto times_adjoint = [](const Link& a, const Link& b) { return G::link(G::multiply_adjoint(G::matrix(a), b)); };
        if (which == 0)
            G::add_upper(sum, times(l.nu_at(0, 0), l.nu_at(0, 1)), l.mu_at(0, 2), times(l.nu_at(1, 0), l.nu_at(1, 1)));
        else if (which == 1)
            G::add_upper(sum, times(l.nu_at(0, 0), l.mu_at(0, 1)), l.mu_at(1, 1), times(l.mu_at(1, 0), l.nu_at(2, 0)));
        else if (which == 2)
            G::add_lower(sum, l.mu_at(-1, 0), times(l.nu_at(-1, 0), l.mu_at(-1, 1)),
                         times_adjoint(l.mu_at(0, 1), l.nu_at(1, 0)));
        else if (which == 3)
            G::add_lower(sum, times(l.nu_at(0, -2), l.nu_at(0, -1)), l.mu_at(0, -2),
                         times(l.nu_at(1, -2), l.nu_at(1, -1)));
        else if (which == 4)
            G::add_lower(sum, l.nu_at(0, -1), times(l.mu_at(0, -1), l.mu_at(1, -1)),
                         times_adjoint(l.nu_at(2, -1), l.mu_at(1, 0)));
        else
            G::add_lower(sum, times(l.nu_at(-1, -1), l.mu_at(-1, 0)), times(l.mu_at(-1, -1), l.mu_at(0, -1)),
                         l.nu_at(1, -1));
    }
};
