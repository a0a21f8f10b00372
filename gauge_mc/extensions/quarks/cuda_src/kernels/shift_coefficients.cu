// Coefficients of conjugate gradients for several shifts of an operator, from alpha and beta of the lowest one, as
// ShiftCoefficients in gauge_mc/extensions/quarks/solvers/multishift.py computes them: the kernel has to be compiled with
// STRICT, so that it does the same operations. The state is [row][shift][vector].
//
// Besides, |r|^2, alpha and beta of every step are kept, as [step][number][vector].
#include "arch/launch.h"

constexpr int ZETA = 0, OLDER = 1, ACTIVE = 2;      // ratios of residuals, and whether a shift goes on
constexpr int LAST_ALPHA = 3, LAST_BETA = 4;        // of the step before
constexpr int ABOVE = 5, TARGET = 6, STEPS = 7;     // the shift above the lowest one, the norm at which it ends
constexpr int FACTORS_OF_SHIFTS = 8;                // three rows for advance_shifts
constexpr int ROWS = FACTORS_OF_SHIFTS + 3;
constexpr int PAST_NUMBERS = 3;

struct Arguments {
    Geometry geometry;
    Work work;
    const double* norm2;   // [vector]
    const double* alpha;   // [vector][s][re, im], and beta
    const double* beta;
    const int* halted;
    double* state;
    double* past;
    int shifts, vectors, fifth;
    Shares shares;
};

INLINE void take_shift(const Arguments& a, int n) {
    const int numbers = a.shifts * a.vectors, vector = n % a.vectors;
    auto row = [&](int i) -> double& { return a.state[i * numbers + n]; };
    const double alpha = a.alpha[2 * vector * a.fifth], beta = a.beta[2 * vector * a.fifth];
    const double norm2 = a.norm2[vector], zeta = row(ZETA), older = row(OLDER), last = row(LAST_ALPHA);
    const double down =
        alpha * row(LAST_BETA) * (older - zeta) + older * last * (1 + alpha * row(ABOVE));
    const double next = down == 0 ? 0 : zeta * older * last / down, ratio = zeta == 0 ? 0 : next / zeta;
    const double size = zeta < 0 ? -zeta : zeta;
    const bool active = row(ACTIVE) != 0 && size * root((scalar)norm2) > row(TARGET);
    row(FACTORS_OF_SHIFTS) = active ? alpha * ratio : 0;
    row(FACTORS_OF_SHIFTS + 1) = active ? beta * (ratio * ratio) : 0;
    row(FACTORS_OF_SHIFTS + 2) = active ? next : 0;
    row(ZETA) = next, row(OLDER) = zeta, row(ACTIVE) = active;
    row(LAST_ALPHA) = alpha, row(LAST_BETA) = beta;
    if (n >= a.vectors) return;
    double* const past = a.past + (long long)row(STEPS) * PAST_NUMBERS * a.vectors + vector;
    past[0] = norm2, past[a.vectors] = alpha, past[2 * a.vectors] = beta;
    row(STEPS) += 1;
}

INLINE void shift_coefficients_site(const Arguments& a, const Site& site, int share, int shares) {
    const int sites = a.geometry.half_x.divisor;
    if ((a.halted && *a.halted) || site.slot >= sites) return;
    ROLLED for (int n = share * sites + site.slot; n < a.shifts * a.vectors; n += shares * sites) take_shift(a, n);
}

SHARED_KERNEL(shift_coefficients, shift_coefficients_site)
