// Sums of the real part of the traces of products of two-link operators, which end in the last slab of the lattice.
// Called once per pair of lines, on a slice of even t.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    TwoLinks operators;
    int slabs;
    TwoLinks before;  // the product of the operators on the preceding devices, or null
    double* sums;
};

INLINE void two_links_trace_site(const Arguments& a, const Site& site, real (&values)[1]) {
    const Geometry& g = a.geometry;
    real trace = broadcast(0);
    ROLLED
    for (int row = 0; row < PAIRS; row++) {
        PairRow v = a.before.data ? a.before.load(g, site, 0, row) : unit_row(row);
        ROLLED
        for (int slab = 0; slab < a.slabs; slab++) v = a.operators.times(v, g, site, slab);
        UNROLL for (int i = 0; i < PAIRS; i++) trace = trace + (i == row ? v.re[i] : broadcast(0));
    }
    values[0] = trace;
}

SUM_KERNEL(two_links_trace, 1, two_links_trace_site)
