// A part of an iteration of conjugate gradients (Hestenes and Stiefel, 1952); see dirac/iterations.h. It computes
//   CURVATURE  alpha = g / <p, A p> with g = |r|^2, or the squared norm of what takes the place of r in directions
//   RESIDUAL   whether the true residual is due
//   DIRECTION  beta = g' / g
// RESIDUAL and DIRECTION are one part if g' is |r'|^2.
#include "arch/launch.h"
#include "dirac/iterations.h"

constexpr int CURVATURE = 1, DIRECTION = 4;
constexpr int CURVATURES = OWN, ROWS = OWN + 1;            // <p, A p>
constexpr int ALPHA = 0, STEP = 1, BETA = 2, FACTORS = 3;  // alpha, -alpha and beta

struct Real {
    double re, im;
};

struct Vector : WatchedVector<ROWS> {
    static constexpr int FACTORS_OF_ALL = FACTORS;
    static constexpr bool IS_COMPLEX = false;
    Real factor[FACTORS];

    INLINE Vector(const Arguments& a, int vector) : WatchedVector(a.state, a.vectors, vector) {
        UNROLL for (int i = 0; i < FACTORS; i++) factor[i] = {0, 0};
    }
    static INLINE int part_of(int factor) { return factor == BETA ? DIRECTION : CURVATURE; }
    static INLINE double ratio(double a, double b, bool where) { return where ? a / b : 0.0; }

    INLINE bool take_curvature(double curvature) {
        begin();
        const bool stepping = live() && usable(curvature);
        row[CURVATURES] = curvature;
        factor[ALPHA].re = ratio(row[NORM2], curvature, stepping);
        factor[STEP].re = -factor[ALPHA].re;
        return stepping != live();
    }
    INLINE bool take_direction(double square) {
        const bool turning = live() && usable(row[NORM2]) && square <= LARGEST;
        factor[BETA].re = ratio(square, row[NORM2], turning);
        row[NEXT + NORM2] = turning ? square : row[NORM2];
        return turning != live();
    }
    INLINE bool take(int part, const double (&sums)[MOST_SUMS]) {
        bool halts = part & CURVATURE ? take_curvature(sums[0]) : false;
        if (part & RESIDUAL) halts = take_residual(sums[0]);
        if (part & DIRECTION) halts = take_direction(sums[0]) || halts;
        return halts;
    }
};

SHARED_KERNEL_IN_TWO(gradient_coefficients, add_products_up, true, end_part<Vector>)
