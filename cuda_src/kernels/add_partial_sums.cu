// Add up the partial sums that sum kernels have stored. The result is a sum for each row and slice; the
// parts are added in their order.
#include "arch/launch.h"

constexpr int LOADS_AT_A_TIME = 16;

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
        const double* partial = a.partial + slice * a.parts * a.values + k;
        double sum = 0;
        int i = 0;
        for (; i + LOADS_AT_A_TIME <= a.parts; i += LOADS_AT_A_TIME) {
            double part[LOADS_AT_A_TIME];
            UNROLL for (int j = 0; j < LOADS_AT_A_TIME; j++) part[j] = partial[(long long)(i + j) * a.values];
            UNROLL for (int j = 0; j < LOADS_AT_A_TIME; j++) sum += part[j];
        }
        for (; i < a.parts; i++) sum += partial[(long long)i * a.values];
        a.totals[slice * a.values + k] = sum;
    }
}

SITE_KERNEL(add_partial_sums, add_partial_sums_site)
