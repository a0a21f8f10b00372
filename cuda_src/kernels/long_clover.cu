// Sums of the topological charge density of a clover of large loops with sides of `length` links, given the lines of
// that length: -Tr (F_01 F_23 - F_02 F_13 + F_03 F_12), where F_mu_nu(x) = P(sum of the four loops around x) / 4.
#include "arch/launch.h"
#include "flow/planes.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field lines;
    int length;
    double* sums;
};

INLINE GROUP::Algebra long_clover(const Arguments& a, const Site& site, int mu, int nu) {
    GROUP::Algebra f;
    ROLLED
    for (int side = 0; side < 2; side++) {
        auto line = [&](int d, int i, int j) {
            return distant_link(a.lines, a.geometry, site, d, mu, (i - side) * a.length, nu, j * a.length);
        };
        GROUP::Matrix staples = GROUP::zero();
        GROUP::add_upper(staples, line(nu, 0, 0), line(mu, 0, 1), line(nu, 1, 0));
        staples = GROUP::scaled(staples, scalar(-1));
        GROUP::add_lower(staples, line(nu, 0, -1), line(mu, 0, -1), line(nu, 1, -1));
        const GROUP::Link u = line(mu, 0, 0);
        if (side == 0) f = GROUP::traceless(GROUP::multiply_adjoint(staples, u));
        else f = f + GROUP::traceless(GROUP::adjoint_times(u, staples));
    }
    return f;
}

INLINE void long_clover_site(const Arguments& a, const Site& site, real (&values)[1]) {
    real charge = broadcast(0);
    GROUP::Algebra before = {};
    ROLLED
    for (int i = 0; i < 6; i++) {
        const Plane plane = plane_of(i);
        const GROUP::Algebra f = long_clover(a, site, plane.mu, plane.nu);
        if (i % 2 == 1) charge = charge + GROUP::overlap(before, f);
        before = f;
    }
    values[0] = charge * scalar(1.0 / 16);
}

SUM_KERNEL(long_clover, 1, long_clover_site)
