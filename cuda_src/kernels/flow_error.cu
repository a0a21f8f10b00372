// The largest distance |V - V'| / N^2 between the links after a step of the gradient flow and those of the embedded
// step of second order, V' = exp(estimate) V_0 (Fritzsch and Ramos, arXiv:1301.4388, appendix D).
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field before, after;
    GROUP::AlgebraField estimate;
    unsigned* largest;  // of every slice, as bits of a float
};

INLINE void flow_error_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    real largest2 = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const packet_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
        const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
        const GROUP::Link other = GROUP::exponential_times(a.estimate.load(g, there), GROUP::load(a.before, g, here));
        GROUP::Matrix difference = GROUP::scaled(GROUP::matrix(other), scalar(-1));
        GROUP::add(difference, GROUP::matrix(GROUP::load(a.after, g, here)));
        largest2 = larger(largest2, GROUP::overlap(difference, difference));
    }
    raise_largest(a.largest + slice_in_memory(g, site), root(largest2) * scalar(1.0 / (GROUP::N * GROUP::N)));
}

SITE_KERNEL(flow_error, flow_error_site)
