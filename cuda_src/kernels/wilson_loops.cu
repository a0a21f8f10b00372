// Sums of Re Tr W for the Wilson loops W made of a spatial line at t and one at t + T, for several T. In
// temporal gauge the temporal sides of the loop are 1, unless they cross the last slice of the lattice.
// Then they are the Polyakov lines P at the ends of the spatial line.
//
// The lines of several slices are kept in registers, and every line above them is read once for all. The lines at t + T
// may be those of other links in space, such as more smeared ones, in the same temporal gauge. The same launch makes
// the lines of the next length. They are stored elsewhere, because other sites still read the present ones.
#include "arch/launch.h"
#include "lattice/lines.h"

constexpr int EXTENTS_AT_A_TIME = 12;  // number of values of T per launch

// Number of slices whose lines are kept in registers, and minimum number of resident blocks per multiprocessor.
constexpr int SLICES_SINGLE = 2, SLICES_DOUBLE = 2;
constexpr int SLICES_AT_A_TIME = REAL_BYTES == 4 ? SLICES_SINGLE : SLICES_DOUBLE;
constexpr int RESIDENT_BLOCKS = REAL_BYTES == 4 ? 4 : 2;

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Lines steps, lines;
    Lines upper;       // the lines at t + T
    Lines longer;      // the lines of the next length; null if they are not needed
    int end[3];        // vector from the first to the last site of a line
    int first, count;  // T = first, ..., first + count - 1
    int slices;        // number of slices on which loops begin
    int lengthened;    // number of slices with lines of the next length, the halo above among them
    double* sums;
};

// The lines that begin at a site and at the sites above it.
struct Column {
    GROUP::Matrix line[SLICES_AT_A_TIME];
};

// Return the site n slices above; x, y and z are the same.
INLINE Site above(Site site, int n) {
    site.t += n;
    site.parity = (site.parity + n) & 1;
    return site;
}

INLINE void lengthen(const Arguments& a, const Site& site, Displaced from, const Column& column) {
    const Geometry& g = a.geometry;
    const Site end = from.site;
    UNROLL for (int n = 0; n < SLICES_AT_A_TIME; n++) {
        if (site.t + n >= a.lengthened) continue;
        from.site = above(end, n);
        const GROUP::Matrix step = brought_from(from, g, load_line(a.steps, g, from.site));
        store_line(a.longer, g, above(site, n), GROUP::product(column.line[n], step));
    }
}

// Replace the lines by P(x)^dagger line P(x + end).
INLINE void cross(const Arguments& a, const Site& site, Displaced from, Column& column) {
    const Geometry& g = a.geometry;
    const int up = g.full[3] - 1 - g.first - site.t;
    from.site = above(from.site, up);
    const GROUP::Matrix near_end = GROUP::adjoint(GROUP::matrix(load_link(a.links, g, above(site, up), 3)));
    const GROUP::Link far_end = brought_from(from, g, load_link(a.links, g, from.site, 3));
    UNROLL for (int n = 0; n < SLICES_AT_A_TIME; n++)
        column.line[n] = GROUP::multiply(GROUP::product(near_end, column.line[n]), far_end);
}

template <class Values> INLINE void wilson_loops_site(const Arguments& a, const Site& site, Values& values) {
    constexpr int SLICES = SLICES_AT_A_TIME;
    const Geometry& g = a.geometry;
    const Displaced from = displaced(g, site, a.end);
    Column column;
    UNROLL for (int n = 0; n < SLICES; n++) {
        const int there = site.t + n < a.lengthened ? n : 0;  // beyond, any line will do
        column.line[n] = load_line(a.lines, g, above(site, there));
    }
    if (a.longer.data) lengthen(a, site, from, column);

    int active = a.slices - site.t;
    if (active <= 0) return;
    if (active > SLICES) active = SLICES;
    int up = a.first;
    if (up == 1 && active == SLICES && a.upper.data == a.lines.data) {
        UNROLL for (; up < SLICES; up++)
            UNROLL for (int n = 0; n < up; n++)
                if (up - n <= a.count) values.add(n, up - n - 1, GROUP::overlap(column.line[n], column.line[up]));
    }
    Site at = above(site, up - 1);
    // Position in memory where t = 0 follows the last slice of the lattice. It may be in the slab's halo.
    const int again = g.full[3] - g.first;
    if (at.t >= again) cross(a, site, from, column);
    if (at.t >= g.slices) at.t -= g.slices;
    ROLLED
    for (; up < a.first + a.count + active - 1; up++) {
        at = above(at, 1);
        if (at.t == again) cross(a, site, from, column);
        if (at.t == g.slices) at.t = 0;
        const GROUP::Matrix line = load_line(a.upper, g, at);
        UNROLL for (int n = 0; n < SLICES; n++) {
            const int k = up - n - a.first, count = n < active ? a.count : 0;
            if ((unsigned)k < (unsigned)count) values.add(n, k, GROUP::overlap(column.line[n], line));
        }
    }
}

SLICES_SUM_KERNEL(wilson_loops, SLICES_AT_A_TIME, EXTENTS_AT_A_TIME, RESIDENT_BLOCKS, wilson_loops_site)
