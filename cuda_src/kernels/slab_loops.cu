// Sums of Re Tr W for Wilson loops whose sides along t are averaged two-link operators of slabs, and whose lines in
// space are on the boundaries of the slabs. With the lines S at t and S' at t + T, and the product P of the operators
// between them, Tr W^* = S_(ac)^* P_(ac)(bd) S'_(bd). Called on the first slice of every slab, on which loops begin.
#include "arch/launch.h"
#include "lattice/two_links.h"

constexpr int SLABS_AT_A_TIME = 6;  // number of values of T per launch

struct Arguments {
    Geometry geometry;
    Work work;
    SlabLines lines;
    TwoLinks operators;
    int thickness;
    int in_memory;     // number of slabs in memory, those of other devices among them
    int first, count;  // T = first, ..., first + count - 1 in units of the thickness
    double* sums;
};

INLINE void slab_loops_site(const Arguments& a, const Site& site, real (&values)[SLABS_AT_A_TIME]) {
    const Geometry& g = a.geometry;
    int slab = site.t / a.thickness;
    PairRow v = entries_of(a.lines.load(g, site, slab));
    UNROLL for (int i = 0; i < PAIRS; i++) v.im[i] = -v.im[i];
    ROLLED
    for (int n = 1; n < a.first + a.count; n++) {
        v = a.operators.times(v, g, site, slab);
        if (++slab == a.in_memory) slab = 0;
        if (n < a.first) continue;
        const PairRow far = entries_of(a.lines.load(g, site, slab));
        real trace = broadcast(0);
        UNROLL for (int i = 0; i < PAIRS; i++) trace = trace + v.re[i] * far.re[i] - v.im[i] * far.im[i];
        set_element(values, n - a.first, trace);
    }
}

SUM_KERNEL(slab_loops, SLABS_AT_A_TIME, slab_loops_site)
