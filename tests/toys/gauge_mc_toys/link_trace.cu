// Sum of Re Tr U over the links of each site.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    double* sums;
};

INLINE void link_trace_site(const Arguments& a, const Site& site, real (&values)[1]) {
    typedef GROUP::Field Field;
    const packet_index here = Field::place(a.geometry, site);
    real sum = broadcast(0);
    for (int mu = 0; mu < 4; mu++) {
        const packet_index first = here + Field::direction(a.geometry, site.parity, mu);
        sum = sum + GROUP::trace_re(GROUP::matrix(GROUP::load(a.links, a.geometry, first)));
    }
    values[0] = sum;
}

SUM_KERNEL(link_trace, 1, link_trace_site)
