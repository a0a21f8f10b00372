// The sum of Re Tr U over the links.
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
    UNROLL for (int mu = 0; mu < 4; mu++) {
        const GROUP::Link u = GROUP::load(a.links, a.geometry, here + Field::direction(a.geometry, site.parity, mu));
        values[0] = values[0] + GROUP::trace_re(GROUP::matrix(u));
    }
}

SUM_KERNEL(link_trace, 1, link_trace_site)
