// Sums of Re Tr of the parallelograms mu, nu, rho, -mu, -nu, -rho that begin with a link of a site, in space and with
// links along t. Each loop occurs once: mu < nu < rho, and nu and rho may be negative.
#include "arch/launch.h"
#include "group/group.h"
#include "lattice/paths.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    double* sums;
};

// With the transporters V along +-nu and W along +-rho,
//   U_mu(x) V(x+mu) W(x+mu+nu) (W(x) V(x+rho) U_mu(x+nu+rho))^dagger.
INLINE void parallelograms_site(const Arguments& a, const Site& site, real (&values)[2]) {
    typedef GROUP::Field Field;
    typedef GROUP::Link Link;
    const Geometry& g = a.geometry;
    const Paths<GROUP> paths(a.links, g, site);
    const Offset here = {0, 0};
    real space = broadcast(0), time = broadcast(0);
    ROLLED
    for (int left_out = 0; left_out < 4; left_out++) {
        const int mu = left_out == 0, nu = left_out < 2 ? 2 : 1, rho = left_out < 3 ? 3 : 2;
        const Offset ahead = Field::step(g, site, mu, true);
        const Link first = paths.link(mu, 0, here);
        ROLLED
        for (int signs = 0; signs < 4; signs++) {
            const bool down = signs & 1, back = signs & 2;
            const Offset to_nu = Field::step(g, site, nu, !down), to_rho = Field::step(g, site, rho, !back);
            const Link begin = paths.times(first, paths.along(nu, down, 1, ahead, to_nu));
            const Link side = paths.along(rho, back, 0, here, to_rho);
            const Link end = paths.times(side, paths.along(nu, down, 1, to_rho, to_nu));
            const real value = GROUP::plaquette(begin, paths.along(rho, back, 2, ahead + to_nu, to_rho),
                                                paths.link(mu, 2, to_nu + to_rho), end);
            if (rho == 3) time = time + value;
            else space = space + value;
        }
    }
    values[0] = space;
    values[1] = time;
}

SUM_KERNEL(parallelograms, 2, parallelograms_site)
