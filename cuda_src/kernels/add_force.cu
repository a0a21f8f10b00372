// A kick of the momenta with a force that is known, P <- P + size F, after which F is 0. The values of a site are the
// kinetic energy -Tr P^2 afterwards, and the sum of |F|^2 = -2 Tr F^2 over its links.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::AlgebraField momenta, force;
    double size;
    unsigned* largest;  // |F| of every slice, as bits of a float
    double* sums;
};

INLINE void add_force_site(const Arguments& a, const Site& site, real (&values)[2]) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const GROUP::Algebra zero = {};
    real energy = broadcast(0), sum = broadcast(0), largest = broadcast(0);
    UNROLL_IF(GROUP::N <= 3) for (int mu = 0; mu < 4; mu++) {
        const packet_index here = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
        const GROUP::Algebra force = a.force.load(g, here);
        const GROUP::Algebra p = a.momenta.load(g, here) + (scalar)a.size * force;
        a.momenta.store(g, here, p);
        a.force.store(g, here, zero);
        const real size = scalar(2) * GROUP::overlap(force, force);
        energy = energy + GROUP::overlap(p, p);
        sum = sum + size;
        largest = larger(largest, size);
    }
    raise_largest(a.largest + slice_in_memory(g, site), root(largest));
    values[0] = energy;
    values[1] = sum;
}

WIDE_SUM_KERNEL(add_force, 2, add_force_site)
