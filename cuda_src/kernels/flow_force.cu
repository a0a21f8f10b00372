// The force of an action, Z = -P(U s^dagger), for flows that do not use it directly.
#include "arch/launch.h"
#include "action/action.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField force;
    ACTION::Coefficients action;
};

INLINE void flow_force_link(const Arguments& a, const Site& site, int mu) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const GROUP::Matrix s = ACTION::template staples<GROUP, false>(a.links, g, site, mu, a.action);
    const GROUP::Link u = GROUP::load(a.links, g, Field::place(g, site) + Field::direction(g, site.parity, mu));
    const packet_index here = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
    a.force.store(g, here, GROUP::traceless(GROUP::multiply_adjoint(s, u)));
}

LINK_KERNEL(flow_force, flow_force_link)
