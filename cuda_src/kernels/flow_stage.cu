// A stage of the gradient flow, whose force is that of an action: Z = -P(U s^dagger), where s is the sum of the
// staples and P the traceless antihermitian part. For the Wilson action with t in lattice units this is
// Luescher, arXiv:1006.4518, eq. (1.4).
#include "arch/launch.h"
#include "action/action.h"
#include "flow/stage.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Flowing fields;
    Stage stage;
    ACTION::Coefficients action;
};

INLINE void flow_stage_link(const Arguments& a, const Site& site, int mu) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const GROUP::Matrix s = ACTION::template staples<GROUP, false>(a.fields.source, g, site, mu, a.action);
    const GROUP::Link u = GROUP::load(a.fields.source, g, Field::place(g, site) + Field::direction(g, site.parity, mu));
    advance(a.fields, a.stage, g, site, mu, u, GROUP::traceless(GROUP::multiply_adjoint(s, u)));
}

LINK_KERNEL(flow_stage, flow_stage_link)
