// A stage of the Zeuthen flow (Ramos and Sint, arXiv:1508.05552, eq. (3.17)): its force is
//   Z_mu(x) + (1/12) D_mu D*_mu Z_mu(x),
// with the force Z of the Symanzik action and the covariant differences along the link's own direction,
//   D_mu D*_mu Z(x) = U_mu(x) Z(x+mu) U_mu(x)^dagger + U_mu(x-mu)^dagger Z(x-mu) U_mu(x-mu) - 2 Z(x).
#include "arch/launch.h"
#include "flow/stage.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Flowing fields;
    Stage stage;
    GROUP::AlgebraField force;
};

INLINE void zeuthen_stage_link(const Arguments& a, const Site& site, int mu) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const int even = site.parity, odd = 1 - even;
    const Offset back = Field::step(g, site, mu, false);
    const Offset there = AlgebraField::step(g, site, mu, true), behind = AlgebraField::step(g, site, mu, false);
    const packet_index near = Field::place(g, site) + Field::direction(g, even, mu);
    const packet_index far = Field::place(g, site) + Field::direction(g, odd, mu);
    const packet_index near_force = AlgebraField::place(g, site) + AlgebraField::direction(g, even, mu);
    const packet_index far_force = AlgebraField::place(g, site) + AlgebraField::direction(g, odd, mu);
    const GROUP::Link u = GROUP::load(a.fields.source, g, near);
    const GROUP::Link v = GROUP::load(a.fields.source, g, far + back.packets, back.crossing);
    const GROUP::Matrix ahead = GROUP::matrix(a.force.load(g, far_force + there.packets, there.crossing));
    const GROUP::Matrix before = GROUP::matrix(a.force.load(g, far_force + behind.packets, behind.crossing));
    GROUP::Matrix sum = GROUP::multiply_adjoint(GROUP::product(GROUP::matrix(u), ahead), u);
    const GROUP::Matrix back_adjoint = GROUP::adjoint(GROUP::matrix(v));
    GROUP::add(sum, GROUP::multiply(GROUP::product(back_adjoint, before), v));
    const GROUP::Algebra here = a.force.load(g, near_force);
    advance(a.fields, a.stage, g, site, mu, u,
            scalar(10.0 / 12) * here + scalar(1.0 / 12) * GROUP::traceless(sum));
}

LINK_KERNEL(zeuthen_stage, zeuthen_stage_link)
