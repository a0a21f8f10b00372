// Sums of the real and imaginary parts of the traces of Polyakov lines, which end in the last slab. Called
// once per line, on its first site in this slab.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    TimeLines before;
    int slices;  // length of the lines in this slab
    double* sums;
};

INLINE void polyakov_site(const Arguments& a, const Site& site, real (&values)[2]) {
    // Lines are summed in the order of their parity on even slices, wherever the slab begins.
    Site first = site;
    first.parity = TimeLines::parity(a.geometry, site);
    const GROUP::Link line = time_line(a.links, a.before, a.geometry, first, a.slices);
    values[0] = GROUP::trace_re(GROUP::matrix(line));
    values[1] = GROUP::trace_im(GROUP::matrix(line));
}

SUM_KERNEL(polyakov, 2, polyakov_site)
