// Sums over x of Re [Tr L(x) (Tr L(x + r step))^*], for the lines L along t through the whole lattice and several r.
// Called once per line, on a slice of even t.
#include "arch/launch.h"
#include "lattice/lines.h"

constexpr int DISTANCES_AT_A_TIME = 4;  // number of values of r per launch

struct Arguments {
    Geometry geometry;
    Work work;
    TimeLines lines;
    int step[3];       // distance of the lines in units of r
    int first, count;  // r = first, ..., first + count - 1
    double* sums;
};

INLINE void polyakov_correlators_site(const Arguments& a, const Site& site, real (&values)[DISTANCES_AT_A_TIME]) {
    const Geometry& g = a.geometry;
    auto load = [&](const Site& at) {
        return GROUP::matrix(GROUP::load(a.lines, g, TimeLines::place(g, at, TimeLines::parity(g, at))));
    };
    const GROUP::Matrix here = load(site);
    const real re = GROUP::trace_re(here), im = GROUP::trace_im(here);
    ROLLED
    for (int k = 0; k < a.count; k++) {
        const int r = a.first + k, steps[3] = {r * a.step[0], r * a.step[1], r * a.step[2]};
        const Displaced from = displaced(g, site, steps);
        const GROUP::Matrix there = brought_from(from, g, load(from.site));
        set_element(values, k, re * GROUP::trace_re(there) + im * GROUP::trace_im(there));
    }
}

SUM_KERNEL(polyakov_correlators, DISTANCES_AT_A_TIME, polyakov_correlators_site)
