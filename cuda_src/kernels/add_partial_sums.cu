// Add up the partial sums that sum kernels have stored. The result is a sum for each row and slice.
#include "arch/launch.h"
#include "lattice/partial_sums.h"

struct Arguments {
    Geometry geometry;
    Work work;              // with parity 0, so that every slot of a slice occurs once
    const double* partial;  // [row][t][part][value]
    double* totals;         // [row][t][value]
    int rows, slices, parts, values;
};

INLINE void add_partial_sums_site(const Arguments& a, const Site& site) {
    ROLLED
    for (int n = site.slot; n < a.rows * a.values; n += a.geometry.slots) {
        const int row = n / a.values, k = n % a.values;
        const long long slice = (long long)row * a.slices + slice_in_memory(a.geometry, site);
        a.totals[slice * a.values + k] = sum_of_parts(a.partial + slice * a.parts * a.values, a.parts, a.values, k);
    }
}

SITE_KERNEL(add_partial_sums, add_partial_sums_site)
