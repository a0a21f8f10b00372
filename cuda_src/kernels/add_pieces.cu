// The sums over whole slices from those over the pieces of slices that sum kernels give: for every
// row and slice the pieces are added in their order.
#include "../kernel.h"

struct Arguments {
    Geometry geometry;
    Work work;              // of parity 0, so that every slot of a slice comes once
    const double* pieces;   // [row][t][piece][value]
    double* totals;         // [row][t][value]
    int rows, slices, count, values;
};

INLINE void add_pieces_site(const Arguments& a, const Site& site) {
    ROLLED
    for (int n = site.slot; n < a.rows * a.values; n += a.geometry.slots) {
        const int row = n / a.values, k = n % a.values;
        const long long slice = (long long)row * a.slices + site.t;
        const double* piece = a.pieces + slice * a.count * a.values + k;
        double sum = 0;
        for (int i = 0; i < a.count; i++) sum += piece[(long long)i * a.values];
        a.totals[slice * a.values + k] = sum;
    }
}

SITE_KERNEL(add_pieces, Arguments, add_pieces_site)
