// Sums of Re Tr of the Wilson loops between a spatial line at t and that at t + T, for some T in
// turn. In temporal gauge nothing lies between them but, where T leads across the last slice, the
// Polyakov lines P: those at the line's ends then close the loop.
#include "../kernel.h"
#include "../transporter.h"

constexpr int VALUES = 8;  // extents T at a time

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
    const Away far = away(g, last, a.end);
    const GROUP::Link near_end = load_link(a.links, g, last, 3);
    const GROUP::Link far_end = carried(load_link(a.links, g, far.site, 3), g, far);
    return GROUP::multiply(product(adjoint(GROUP::matrix(near_end)), line), far_end);
}

INLINE void wilson_loops_site(const Arguments& a, const Site& site, real (&values)[VALUES]) {
    const Geometry& g = a.geometry;
    GROUP::Matrix line = load_line(a.lines, g, site, Lines::LINE);
    Site at = site;
    at.t += a.first - 1;
    at.parity = (site.parity + a.first - 1) & 1;
    // Where the lattice begins again: a slab has copies of the slices that follow.
    const int again = g.full[3] - g.first;
    if (at.t >= again) line = across(a, site, line);
    if (at.t >= g.slices) at.t -= g.slices;
    ROLLED
    for (int k = 0; k < a.count; k++) {
        at.t++;
        at.parity = 1 - at.parity;
        if (at.t == again) line = across(a, site, line);
        if (at.t == g.slices) at.t = 0;
        const real value = overlap(line, load_line(a.lines, g, at, Lines::LINE));
#ifdef __CUDACC__
        UNROLL for (int i = 0; i < VALUES; i++) values[i] = i == k ? value : values[i];  // registers have no index
#else
        values[k] = value;
#endif
    }
}

SUM_KERNEL(wilson_loops, Arguments, VALUES, wilson_loops_site)
