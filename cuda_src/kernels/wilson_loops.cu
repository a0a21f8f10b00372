// Sums of Re Tr W for the Wilson loops W made of a spatial line at t and one at t + T, for several T. In
// temporal gauge the temporal sides of the loop are 1, unless they cross the last slice of the lattice.
// Then they are the Polyakov lines P at the ends of the spatial line.
#include "arch/launch.h"
#include "lattice/lines.h"

constexpr int EXTENTS_AT_A_TIME = 8;  // number of values of T per launch

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Lines lines;
    int end[3];        // vector from the first to the last site of a line
    int first, count;  // T = first, ..., first + count - 1 <= slices
    double* sums;
};

// P(x)^dagger line P(x + end).
INLINE GROUP::Matrix across(const Arguments& a, const Site& site, const GROUP::Matrix& line) {
    const Geometry& g = a.geometry;
    Site last = site;
    last.t = g.full[3] - 1 - g.first;
    last.parity = (site.parity + last.t - site.t) & 1;
    const Displaced far = displaced(g, last, a.end);
    const GROUP::Link near_end = load_link(a.links, g, last, 3);
    const GROUP::Link far_end = brought_from(far, g, load_link(a.links, g, far.site, 3));
    return GROUP::multiply(GROUP::product(GROUP::adjoint(GROUP::matrix(near_end)), line), far_end);
}

INLINE void wilson_loops_site(const Arguments& a, const Site& site, real (&values)[EXTENTS_AT_A_TIME]) {
    const Geometry& g = a.geometry;
    GROUP::Matrix line = load_line(a.lines, g, site, Lines::LINE);
    Site at = site;
    at.t += a.first - 1;
    at.parity = (site.parity + a.first - 1) & 1;
    // Position in memory where t = 0 follows the last slice of the lattice. It may be in the slab's halo.
    const int again = g.full[3] - g.first;
    if (at.t >= again) line = across(a, site, line);
    if (at.t >= g.slices) at.t -= g.slices;
    ROLLED
    for (int k = 0; k < a.count; k++) {
        at.t++;
        at.parity = 1 - at.parity;
        if (at.t == again) line = across(a, site, line);
        if (at.t == g.slices) at.t = 0;
        set_element(values, k, GROUP::overlap(line, load_line(a.lines, g, at, Lines::LINE)));
    }
}

SUM_KERNEL(wilson_loops, EXTENTS_AT_A_TIME, wilson_loops_site)
