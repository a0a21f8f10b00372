// The clover: the sum of the four plaquettes of a plane around a site.
#pragma once

#include "group/group.h"

// The field strength of a plane, times four: the sum of part(m) over two matrices m whose antihermitian parts add up to
// that of the four plaquettes around the site. Two plaquettes share the link U_mu(x) and two the link U_mu(x-mu), so that
// staples are added up first:
//   P(U_nu(x-nu)^+ U_mu(x-nu) U_nu(x+mu-nu) U_mu(x)^+ + U_mu(x) U_nu(x+mu) U_mu(x+nu)^+ U_nu(x)^+)
//     = P((lower staple - upper staple) U_mu(x)^+).
// Also returns Re Tr (1 - U_p) of the plaquette that begins at the site.
template <class Part>
INLINE auto clover_of(const GROUP::Field& links, const Geometry& g, const Site& site, int mu, int nu, Part part,
                      real& plaquette) {
    typedef GROUP::Field Field;
    const packet_index place = Field::place(g, site);
    const Offset up = Field::step(g, site, nu, true), down = Field::step(g, site, nu, false);
    decltype(part(GROUP::Matrix())) f;
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
        if (side == 0) f = part(GROUP::multiply_adjoint(staples, u));
        else f = f + part(GROUP::adjoint_times(u, staples));
    }
    return f;
}
