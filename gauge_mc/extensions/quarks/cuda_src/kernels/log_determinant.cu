// The sum of ln det (H^2 + mass^2) over sites, where H is the hermitian part of a Dirac operator that is diagonal in the
// sites, for both chiralities.
#include "arch/launch.h"
#include "arch/maths.h"
#include "dirac/block.h"

struct Arguments {
    Geometry geometry;
    Work work;
    const void* blocks;  // H
    double mass;
    double* sums;
};

// The determinant of a positive matrix by Gaussian elimination, which needs no pivoting.
INLINE real determinant_of_positive(Block a) {
    real determinant = broadcast(1);
    ROLLED
    for (int k = 0; k < BLOCK_ROWS; k++) {
        determinant = determinant * a.re[k][k];
        const real pivot = scalar(1) / a.re[k][k];
        for (int i = k + 1; i < BLOCK_ROWS; i++) {
            const real re = a.re[i][k] * pivot, im = a.im[i][k] * pivot;
            for (int j = k + 1; j < BLOCK_ROWS; j++) {
                a.re[i][j] = a.re[i][j] - (re * a.re[k][j] - im * a.im[k][j]);
                a.im[i][j] = a.im[i][j] - (re * a.im[k][j] + im * a.re[k][j]);
            }
        }
    }
    return determinant;
}

INLINE void log_determinant_site(const Arguments& a, const Site& site, real (&values)[1]) {
    values[0] = broadcast(0);
    ROLLED
    for (int chirality = 0; chirality < 2; chirality++) {
        const Block h = load_block(a.blocks, a.geometry, site, chirality);
        values[0] = values[0] + natural_log(determinant_of_positive(square_plus(h, (scalar)a.mass)));
    }
}

SUM_KERNEL(log_determinant, 1, log_determinant_site)
