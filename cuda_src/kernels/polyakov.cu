// Sums of the real and imaginary parts of the traces of Polyakov lines. Called once per line.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    TimeLines lines;
    double* sums;
};

INLINE void polyakov_site(const Arguments& a, const Site& site, real (&values)[2]) {
    const GROUP::Link line = GROUP::load(a.lines, a.geometry, TimeLines::place(a.geometry, site, site.parity));
    values[0] = GROUP::trace_re(GROUP::matrix(line));
    values[1] = GROUP::trace_im(GROUP::matrix(line));
}

SUM_KERNEL(polyakov, 2, polyakov_site)
