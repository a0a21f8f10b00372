// Two-link operators of slabs that consist of several thinner slabs: the products of the operators of these are added
// to an average. Called once per pair of lines, on the first site of one of them.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    TwoLinks thin, average;
    int thickness;  // of the slabs
    int factors;    // number of thin slabs in each
    int first;      // 1: the average is empty so far
    double weight;  // of the product in the average
};

INLINE void add_two_links_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const int slab = site.t / a.thickness, begin = slab * a.factors;
    const real weight = broadcast((scalar)a.weight);
    ROLLED
    for (int row = 0; row < PAIRS; row++) {
        PairRow v = a.thin.load(g, site, begin, row);
        ROLLED
        for (int n = 1; n < a.factors; n++) v = a.thin.times(v, g, site, begin + n);
        UNROLL for (int i = 0; i < PAIRS; i++) v.re[i] = v.re[i] * weight, v.im[i] = v.im[i] * weight;
        if (!a.first) {
            const PairRow so_far = a.average.load(g, site, slab, row);
            UNROLL for (int i = 0; i < PAIRS; i++) v.re[i] = v.re[i] + so_far.re[i], v.im[i] = v.im[i] + so_far.im[i];
        }
        a.average.store(g, site, slab, row, v);
    }
}

SITE_KERNEL(add_two_links, add_two_links_site)
