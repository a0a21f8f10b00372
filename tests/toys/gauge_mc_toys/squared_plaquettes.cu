// Sum over the plaquettes that begin at a site of 1 - (Re Tr U_p / N)^2, and the force of this sum times a factor, which
// is added to a field. With factor 0 there is no such field.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField force;
    double factor;
    double* sums;
};

INLINE void squared_plaquettes_site(const Arguments& a, const Site& site, real (&values)[1]) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const packet_index here = Field::place(g, site);
    auto link = [&](int parity, int mu, const Offset& o) {
        return GROUP::load(a.links, g, here + Field::direction(g, parity, mu) + o.packets, o.crossing);
    };
    const int even = site.parity, odd = 1 - even;
    const scalar per_square = scalar(1) / scalar(GROUP::N * GROUP::N), factor = (scalar)a.factor * per_square;
    real sum = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const GROUP::Link u = link(even, mu, {0, 0});
        const Offset ahead = Field::step(g, site, mu, true);
        GROUP::Algebra force;
        UNROLL for (int i = 0; i < GROUP::ALGEBRA_COMPONENTS; i++) force.a[i] = broadcast(0);
        ROLLED
        for (int k = 1; k < 4; k++) {
            const int nu = (mu + k) & 3;
            const Offset up = Field::step(g, site, nu, true), down = Field::step(g, site, nu, false);
            GROUP::Matrix staples[2] = {GROUP::zero(), GROUP::zero()};
            GROUP::add_upper(staples[0], link(even, nu, {0, 0}), link(odd, mu, up), link(odd, nu, ahead));
            GROUP::add_lower(staples[1], link(odd, nu, down), link(odd, mu, down), link(even, nu, down + ahead));
            ROLLED
            for (int n = 0; n < 2; n++) {
                const real trace = GROUP::overlap(GROUP::matrix(u), staples[n]);
                if (n == 0 && nu > mu) sum = sum + (broadcast(1) - per_square * (trace * trace));
                const GROUP::Algebra own = GROUP::traceless(GROUP::multiply_adjoint(staples[n], u));
                UNROLL for (int i = 0; i < GROUP::ALGEBRA_COMPONENTS; i++) force.a[i] = force.a[i] + trace * own.a[i];
            }
        }
        if (a.factor != 0) {
            const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
            a.force.store(g, there, a.force.load(g, there) + factor * force);
        }
    }
    values[0] = sum;
}

SUM_KERNEL(squared_plaquettes, 1, squared_plaquettes_site)
