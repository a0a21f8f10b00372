// A step of conjugate gradients for several shifts: y_i += a_i p_i and p_i = b_i p_i + c_i r for every shift i. Vectors of
// neighbouring shifts are `stride` vectors apart. What is multiplied by 0 is not read, and a shift whose factors are all 0
// is left unchanged.
#include "arch/launch.h"
#include "dirac/shifts.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors y, p, r;
    double a[MOST_SHIFTS], b[MOST_SHIFTS], c[MOST_SHIFTS];
    const double* found;  // if not null, factors are these: those of shift i and kind k are at (k shifts + i) distance
    const int* halted;    // see is_idle
    int shifts, stride, distance;
};

INLINE double factor_of_shift(const Arguments& a, const double* own, int kind, int i) {
    return a.found ? a.found[(kind * a.shifts + i) * a.distance] : own[i];
}

INLINE void advance_shifts_site(const Arguments& a, const Site& site) {
    if (is_idle(a.halted)) return;
    const Geometry& g = a.geometry;
    const Spinor r = load_vector(a.r, g, site);
    ROLLED
    for (int i = 0; i < a.shifts; i++) {
        const double of_p = factor_of_shift(a, a.a, 0, i);
        const double of_old = factor_of_shift(a, a.b, 1, i), of_r = factor_of_shift(a, a.c, 2, i);
        if (of_p == 0 && of_old == 0 && of_r == 0) continue;
        char* const directions = spinor_block(a.p, site.t, site.parity, i * a.stride);
        Spinor p, next;
        UNROLL for (int k = 0; k < SPINOR_REALS; k++) p.c[k] = broadcast(0);
        if (of_p != 0 || of_old != 0) STORAGE::load(g, directions, site.slot, p.c);
        if (of_p != 0) {
            char* const solutions = spinor_block(a.y, site.t, site.parity, i * a.stride);
            Spinor y;
            STORAGE::load(g, solutions, site.slot, y.c);
            add_multiple(y, {of_p, 0}, p);
            STORAGE::store(g, solutions, site.slot, y.c);
        }
        const scalar b = (scalar)of_old, c = (scalar)of_r;
        UNROLL for (int k = 0; k < SPINOR_REALS; k++) next.c[k] = b * p.c[k] + c * r.c[k];
        STORAGE::store(g, directions, site.slot, next.c);
    }
}

SITE_KERNEL(advance_shifts, advance_shifts_site)
