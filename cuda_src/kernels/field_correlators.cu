// Sums of the real and imaginary part of sum over i of Tr [F_i(x) G_i(x) L(x)], with fields F and G at every site
// (directions 0, 1 and 2) and a closed line L along t that begins there.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::AlgebraField first, second;
    GROUP::Field lines;
    int direction;  // of the lines
    double* sums;
};

INLINE void field_correlators_site(const Arguments& a, const Site& site, real (&values)[2]) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const packet_index here = AlgebraField::place(g, site);
    GROUP::Matrix sum = GROUP::zero();
    ROLLED
    for (int i = 0; i < 3; i++) {
        const packet_index at = here + AlgebraField::direction(g, site.parity, i);
        const GROUP::Matrix f = GROUP::matrix(a.first.load(g, at));
        GROUP::add(sum, GROUP::product(f, GROUP::matrix(a.second.load(g, at))));
    }
    const packet_index line = GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, a.direction);
    const GROUP::Matrix closed = GROUP::multiply(sum, GROUP::load(a.lines, g, line));
    values[0] = GROUP::trace_re(closed);
    values[1] = GROUP::trace_im(closed);
}

SUM_KERNEL(field_correlators, 2, field_correlators_site)
