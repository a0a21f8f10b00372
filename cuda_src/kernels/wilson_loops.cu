// Sums of Re Tr of the Wilson loops between a spatial line at t and the one at t + T, for several T. In
// temporal gauge nothing lies between them, unless T leads across the last slice of the lattice. Then
// the Polyakov lines P at the line's ends close the loop.
#include "arch/launch.h"
#include "lattice/lines.h"

constexpr int EXTENTS_AT_A_TIME = 8;  // values of T in one launch

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Lines lines;
    int end[3];        // from a line's first site to its last
    int first, count;  // T from first to first + count - 1, at most slices
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
    // The slice at which the lattice begins again: a slab's halo holds the slices that follow it.
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
