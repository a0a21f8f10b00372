// A kick of the momenta, P <- P + kick F(U), with the force of kick_and_drift.cu. The values of a site are the kinetic
// energy -Tr P^2 afterwards, and the sum of |F|^2 = -2 Tr F^2 over its links.
#include "arch/launch.h"
#include "action/action.h"
#include "group/group.h"
#include "update/replicas.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField momenta;
    double kick;
    unsigned* largest;  // |F| of every slice, as bits of a float
    ACTION::Coefficients action;
    // Of every replica that moves, and of every replica, or null.
    const ReplicaMove* moves;
    const ACTION::Coefficients* actions;
    double* sums;
};

INLINE void kick_site(const Arguments& a, const Site& launched, real (&values)[2]) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const Site& site = REPLICAS::moving(a, launched);
    const ACTION::Coefficients& action = REPLICAS::action(a, site);
    const scalar weight = scalar(0.5) * ACTION::weight(action);
    real energy = broadcast(0), sum = broadcast(0), largest = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const GROUP::Matrix s = ACTION::template staples<GROUP, false>(a.links, g, site, mu, action);
        const GROUP::Link u = GROUP::load(a.links, g, Field::place(g, site) + Field::direction(g, site.parity, mu));
        const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
        const GROUP::Algebra force = weight * GROUP::traceless(GROUP::multiply_adjoint(s, u));
        const GROUP::Algebra p = a.momenta.load(g, there) + (scalar)REPLICAS::kick(a, launched) * force;
        a.momenta.store(g, there, p);
        const real size = scalar(2) * GROUP::overlap(force, force);
        energy = energy + GROUP::overlap(p, p);
        sum = sum + size;
        largest = larger(largest, size);
    }
    raise_largest(a.largest + slice_in_memory(g, site), root(largest));
    values[0] = energy;
    values[1] = sum;
}

WIDE_SUM_KERNEL(kick, 2, kick_site)
