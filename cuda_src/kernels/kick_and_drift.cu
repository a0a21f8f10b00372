// A kick of the momenta, followed by a drift of the links: P <- P + kick F(U), U <- exp(drift P) U. The force is
// F = -(w / 2) (traceless antihermitian part of U s^dagger), if the action depends on U as -w Re Tr (U s^dagger). With it
// dU/dt = P U and dP/dt = F(U) conserve -Tr P^2 + S(U).
#include "arch/launch.h"
#include "action/action.h"
#include "group/group.h"
#include "update/replicas.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;  // the links of other sites are still needed
    GROUP::AlgebraField momenta;
    double kick, drift;
    ACTION::Coefficients action;
    // Of every replica that moves, and of every replica, or null.
    const ReplicaMove* moves;
    const ACTION::Coefficients* actions;
};

INLINE void kick_and_drift_link(const Arguments& a, const Site& launched, int mu) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const Site& site = REPLICAS::moving(a, launched);
    const ACTION::Coefficients& action = REPLICAS::action(a, site);
    const scalar kick = (scalar)REPLICAS::kick(a, launched) * (scalar(0.5) * ACTION::weight(action));
    const GROUP::Matrix s = ACTION::template staples<GROUP, false>(a.source, g, site, mu, action);
    const packet_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
    const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
    const GROUP::Link u = GROUP::load(a.source, g, here);
    const GROUP::Algebra p = a.momenta.load(g, there) + kick * GROUP::traceless(GROUP::multiply_adjoint(s, u));
    a.momenta.store(g, there, p);
    const GROUP::Link moved = GROUP::exponential_times((scalar)REPLICAS::drift(a, launched) * p, u);
    GROUP::store<true>(a.target, g, here, GROUP::reunitarised(moved));
}

LINK_KERNEL(kick_and_drift, kick_and_drift_link)
