// Sum over the plaquettes that begin at a site of (N^2 - |Tr U_p|^2) / (N^2 - 1). If there is a factor, the force of
// this sum times the factor is added to a field instead, and the sum is 0.
//
// With the staples s around a link u, Tr U_p = Tr(u s^dagger), and the force is the sum over them of the traceless
// antihermitian part of Tr(u s^dagger) s u^dagger, divided by N^2 - 1.
#include "arch/launch.h"
#include "group/complex.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField force;
    double factor;
    double* sums;
};

// z^* m; the trace z is real if matrices are quaternions, for which there are no complex factors.
template <class G> INLINE typename G::Matrix times_conj(const typename G::Matrix& m, const complex& z) {
    if constexpr (G::N == 2) return G::scaled(m, z.re);
    else return G::scaled(m, conj(z));
}

INLINE void adjoint_plaquette_site(const Arguments& a, const Site& site, real (&values)[1]) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.links, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    const int even = site.parity, odd = 1 - even;
    const bool forced = a.factor != 0;
    const scalar per_trace = scalar(1.0 / (GROUP::N * GROUP::N - 1));
    real sum = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const GROUP::Link u = link(even, mu, {0, 0});
        const Offset ahead = Field::step(g, site, mu, true);
        GROUP::Matrix total = GROUP::zero();
        ROLLED
        for (int nu = forced ? 0 : mu + 1; nu < 4; nu++) {
            if (nu == mu) continue;
            ROLLED
            for (int side = 0; side < (forced ? 2 : 1); side++) {
                const Offset next = Field::step(g, site, nu, side == 0);
                GROUP::Matrix s = GROUP::zero();
                if (side == 0) GROUP::add_upper(s, link(even, nu, {0, 0}), link(odd, mu, next), link(odd, nu, ahead));
                else GROUP::add_lower(s, link(odd, nu, next), link(odd, mu, next), link(even, nu, next + ahead));
                const GROUP::Matrix p = GROUP::multiply_adjoint(s, u);
                const complex z = {GROUP::trace_re(p), GROUP::trace_im(p)};
                if (forced) GROUP::add(total, times_conj<GROUP>(p, z));
                else sum = sum + per_trace * (broadcast(GROUP::N * GROUP::N) - (square(z.re) + square(z.im)));
            }
        }
        if (forced) {
            const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
            const scalar factor = (scalar)a.factor * per_trace;
            a.force.store(g, there, a.force.load(g, there) + factor * GROUP::traceless(total));
        }
    }
    values[0] = sum;
}

SUM_KERNEL(adjoint_plaquette, 1, adjoint_plaquette_site)
