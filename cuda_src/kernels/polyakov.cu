// Sums of Tr prod_t U_t(x, t), real and imaginary part, over the spatial sites: one call a line,
// counted at the first slice stored. A line keeps its slot and alternates in parity.
#include "../kernel.h"
#include "../su3.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    double* sums;
};

INLINE void polyakov_site(const Arguments& a, const Site& site, real (&values)[2]) {
    const Geometry& g = a.geometry;
    GROUP::Matrix line = GROUP::one();
    Site at = site;
    ROLLED
    for (; at.t < g.slices; at.t++) {
        const piece_index here = GROUP::Field::place(g, at) + GROUP::Field::direction(g, at.parity, 3);
        line = GROUP::multiply(line, GROUP::load(a.links, g, here));
        at.parity = 1 - at.parity;
    }
    values[0] = GROUP::trace_re(line);
    values[1] = GROUP::trace_im(line);
}

SUM_KERNEL(polyakov, Arguments, 2, polyakov_site)
