// The Luescher-Weisz action with plaquettes, 2x1 rectangles and parallelograms,
//   beta (sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over rectangles of (1 - Re Tr U_r / N)
//         + c2 sum over parallelograms of (1 - Re Tr U_q / N)).
// A parallelogram is the loop mu, nu, rho, -mu, -nu, -rho through six corners of a cube.
#pragma once

#include "action/rectangles.h"
#include "lattice/paths.h"

struct LuscherWeisz {
    struct Coefficients {
        double beta_over_n;  // beta / N
        double c1, c2;
    };

    static INLINE scalar weight(const Coefficients& c) { return (scalar)c.beta_over_n; }

    template <class G, bool UNROLLED>
    static INLINE typename G::Matrix staples(const typename G::Field& links, const Geometry& g, const Site& site,
                                             int mu, const Coefficients& c) {
        typename G::Matrix sum = Rectangles::sum_over_planes<G>(links, g, site, mu, c.c1, EqualPlanes());
        ROLLED
        for (int k = 1; k < 4; k++) {
            ROLLED
            for (int side = 0; side < 2; side++) add_side<G>(sum, links, g, site, mu, k, side == 1, (scalar)c.c2);
        }
        return sum;
    }

private:
    // Add c2 times the four staples whose last link is that of nu = mu + k, or of -nu if `down`. With V the transporter
    // along +-nu, and W that along +-rho for the four signed directions rho, they are
    //   sum over rho of W(x) V(x+rho) U_mu(x+nu+rho) W(x+mu+nu)^+  V(x+mu)^+.
    template <class G>
    static INLINE void add_side(typename G::Matrix& sum, const typename G::Field& links, const Geometry& g,
                                const Site& site, int mu, int k, bool down, scalar c2) {
        typedef typename G::Link Link;
        typedef typename G::Field Field;
        const Paths<G> paths(links, g, site);
        const Offset ahead = Field::steps(g, site, mu, 1), here = {0, 0};
        const int nu = (mu + k) & 3;
        const Offset to_nu = Field::steps(g, site, nu, down ? -1 : 1);

        typename G::Matrix begin = G::zero();
        ROLLED
        for (int i = 0; i < 4; i++) {
            const int j = 1 + (i >> 1);
            const int rho = (mu + j + (j >= k)) & 3;
            const bool back = i & 1;
            const Offset to_rho = Field::steps(g, site, rho, back ? -1 : 1);
            const Link first = paths.along(rho, back, 0, here, to_rho);
            const Link two = paths.times(first, paths.along(nu, down, 1, to_rho, to_nu));
            const Link three = paths.times(two, paths.link(mu, 2, to_nu + to_rho));
            const Link last = paths.along(rho, back, 2, ahead + to_nu, to_rho);
            G::add(begin, G::multiply_adjoint(G::matrix(three), last));
        }
        G::add(sum, G::scaled(G::multiply_adjoint(begin, paths.along(nu, down, 1, ahead, to_nu)), c2));
    }
};
