// A step of conjugate gradients for several shifts: y_i += a_i p_i and p_i = b_i p_i + c_i r for every shift i. Vectors of
// neighbouring shifts are `stride` vectors apart. What is
// multiplied by 0 is not read, and a shift whose factors are all 0 is left unchanged.
#include "arch/launch.h"
#include "dirac/shifts.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors y, p, r;
    double a[MOST_SHIFTS], b[MOST_SHIFTS], c[MOST_SHIFTS];
    int shifts, stride;
};

INLINE void advance_shifts_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const Spinor r = load_vector(a.r, g, site);
    ROLLED
    for (int i = 0; i < a.shifts; i++) {
        if (a.a[i] == 0 && a.b[i] == 0 && a.c[i] == 0) continue;
        char* const directions = spinor_block(a.p, site.t, site.parity, i * a.stride);
        Spinor p, next;
        UNROLL for (int k = 0; k < SPINOR_REALS; k++) p.c[k] = broadcast(0);
        if (a.a[i] != 0 || a.b[i] != 0) STORAGE::load(g, directions, site.slot, p.c);
        if (a.a[i] != 0) {
            char* const solutions = spinor_block(a.y, site.t, site.parity, i * a.stride);
            Spinor y;
            STORAGE::load(g, solutions, site.slot, y.c);
            add_multiple(y, {a.a[i], 0}, p);
            STORAGE::store(g, solutions, site.slot, y.c);
        }
        const scalar b = (scalar)a.b[i], c = (scalar)a.c[i];
        UNROLL for (int k = 0; k < SPINOR_REALS; k++) next.c[k] = b * p.c[k] + c * r.c[k];
        STORAGE::store(g, directions, site.slot, next.c);
    }
}

SITE_KERNEL(advance_shifts, advance_shifts_site)
