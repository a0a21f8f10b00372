// Sums of the action density and of the topological charge density. The field strength is that of the clover,
//   F_mu_nu(x) = P(sum of the four plaquettes around x) / 4,
// where P is the traceless antihermitian part. The values of a site are
//   sum over the planes of Re Tr (1 - U_p), of the plaquettes that begin at the site,
//   sum over the planes of -Tr F_mu_nu F_mu_nu,
//   -Tr (F_01 F_23 - F_02 F_13 + F_03 F_12).
// The largest Re Tr (1 - U_p) of every slice is found as well.
#include "arch/launch.h"
#include "flow/planes.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    unsigned* largest;  // as bits of a float
    double* sums;
};

// The field strength of a plane, times four. Two plaquettes share the link U_mu(x) and two the link U_mu(x-mu), so that
// staples are added up first:
//   P(U_nu(x-nu)^+ U_mu(x-nu) U_nu(x+mu-nu) U_mu(x)^+ + U_mu(x) U_nu(x+mu) U_mu(x+nu)^+ U_nu(x)^+)
//     = P((lower staple - upper staple) U_mu(x)^+).
// Also returns Re Tr (1 - U_p) of the plaquette that begins at the site.
INLINE GROUP::Algebra clover(const GROUP::Field& links, const Geometry& g, const Site& site, int mu, int nu,
                             real& plaquette) {
    typedef GROUP::Field Field;
    const packet_index place = Field::place(g, site);
    const Offset up = Field::step(g, site, nu, true), down = Field::step(g, site, nu, false);
    GROUP::Algebra f;
    // Two turns of a loop need fewer registers than one long piece of code.
    ROLLED
    for (int side = 0; side < 2; side++) {
        const Offset step = Field::step(g, site, mu, side == 0);
        const Offset begin = side == 0 ? Offset{0, 0} : step, end = side == 0 ? step : Offset{0, 0};
        const int even = (site.parity + side) & 1, odd = 1 - even;
        auto link = [&](int parity, int d, const Offset& o) {
            return GROUP::load(links, g, place + Field::direction(g, parity, d) + o.packets, o.crossing);
        };
        GROUP::Matrix staples = GROUP::zero();
        GROUP::add_upper(staples, link(even, nu, begin), link(odd, mu, begin + up), link(odd, nu, end));
        if (side == 0) {
            const real trace = GROUP::overlap(staples, GROUP::matrix(link(even, mu, begin)));
            plaquette = scalar(GROUP::N) - trace;
        }
        staples = GROUP::scaled(staples, scalar(-1));
        GROUP::add_lower(staples, link(odd, nu, begin + down), link(odd, mu, begin + down), link(even, nu, end + down));
        const GROUP::Link u = link(even, mu, begin);
        if (side == 0) f = GROUP::traceless(GROUP::multiply_adjoint(staples, u));
        else f = f + GROUP::traceless(GROUP::adjoint_times(u, staples));
    }
    return f;
}

INLINE void clover_site(const Arguments& a, const Site& site, real (&values)[3]) {
    real plaquettes = broadcast(0), energy = broadcast(0), charge = broadcast(0), largest = broadcast(0);
    GROUP::Algebra before = {};
    ROLLED
    for (int i = 0; i < 6; i++) {
        const Plane plane = plane_of(i);
        real plaquette;
        const GROUP::Algebra f = clover(a.links, a.geometry, site, plane.mu, plane.nu, plaquette);
        plaquettes = plaquettes + plaquette;
        largest = larger(largest, plaquette);
        energy = energy + GROUP::overlap(f, f);
        if (i % 2 == 1) charge = charge + GROUP::overlap(before, f);
        before = f;
    }
    values[0] = plaquettes;
    values[1] = energy * scalar(1.0 / 16);
    values[2] = charge * scalar(1.0 / 16);
    raise_largest(a.largest + slice_in_memory(a.geometry, site), largest);
}

SUM_KERNEL(clover, 3, clover_site)
