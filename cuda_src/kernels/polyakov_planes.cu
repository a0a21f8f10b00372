// Sums of the real and imaginary parts of Tr L over planes of space perpendicular to an axis, for the lines L along t
// through the whole lattice. Called once per line, on a slice of even t.
#include "arch/launch.h"
#include "lattice/lines.h"

constexpr int PLANES_AT_A_TIME = 4;  // number of planes per launch

struct Arguments {
    Geometry geometry;
    Work work;
    TimeLines lines;
    int axis;   // 0, 1, 2 for x, y, z
    int first;  // the planes are first, ..., first + PLANES_AT_A_TIME - 1, as far as there are as many
    double* sums;
};

INLINE void polyakov_planes_site(const Arguments& a, const Site& site, real (&values)[2 * PLANES_AT_A_TIME]) {
    const Geometry& g = a.geometry;
    const TimeLines& lines = a.lines;
    const GROUP::Link line = GROUP::load(lines, g, TimeLines::place(g, site, TimeLines::parity(g, site)));
    const real re = GROUP::trace_re(GROUP::matrix(line)), im = GROUP::trace_im(GROUP::matrix(line));
    const int at[3] = {site.x, site.y, site.z};
    const word number = lane_numbers(site_in_slice(g.full, at), g.lane_site);
    const unsigned stride = a.axis == 0 ? 1 : a.axis == 1 ? g.full[0] : g.full[0] * g.full[1];
    const unsigned extent = a.axis == 0 ? g.full[0] : a.axis == 1 ? g.full[1] : g.full[2];
    UNROLL for (int k = 0; k < PLANES_AT_A_TIME; k++) {
        const unsigned plane = (unsigned)(a.first + k);
        const mask here = lanes_where(number, [&](unsigned n) { return n / stride % extent == plane; });
        values[2 * k] = select(here, re, broadcast(0));
        values[2 * k + 1] = select(here, im, broadcast(0));
    }
}

SUM_KERNEL(polyakov_planes, 2 * PLANES_AT_A_TIME, polyakov_planes_site)
