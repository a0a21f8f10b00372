// Operators along the fifth direction of vectors psi_s(x) that are diagonal in the sites:
//   y = u + factor N Q^{-1} psi, without u if it is null,
// where N and Q act on both chiralities as bidiagonal matrices with a corner. For the upper components, or for the lower
// ones if the directions are exchanged by `reversed`,
//   (Q z)_s = q_s z_s + q'_s z_{s-1},  z_{-1} = -m z_{L-1},
// and for the others the same with s+1, and z_L = -m z_0, instead of s-1 and z_{-1}. A recursion finds z_{-1} in a first
// pass, and y in a second one, in O(L) operations. Coefficients of a slice are 1 / q, -q' / q, n and n'.
#include "arch/launch.h"
#include "dirac/spinors.h"

constexpr int COEFFICIENTS = 4;  // reals of a slice and a chirality

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors source, other, target;  // psi, u and y; only u may be the same as y, unless the storage COUNTS
    const void* coefficients;       // [chirality][s][COEFFICIENTS], reals of the arithmetic
    double corner[2];               // of each chirality: z_{-1} is that of the first pass, which ends with z_{L-1}, times it
    double factor;
    int extent, vectors, reversed;  // the extent L, and the number of vectors with all s
};

constexpr int PART = COLOUR_REALS / GROUP::N * SPINS / 2;  // reals of a colour and a chirality
constexpr int PARTS = SPINOR_REALS / PART;

struct Part {
    real c[PART];
};

// Call each(s, y) for all s, for one part of the spinors of the site: colour number part / 2, chirality part % 2.
template <class Each> INLINE void sweep(const Arguments& a, const Site& site, int vector, int part, Each each) {
    const Geometry& g = a.geometry;
    const int slice = slice_in_memory(g, site), chirality = part & 1;
    const scalar* const table = (const scalar*)a.coefficients + chirality * COEFFICIENTS * a.extent;
    const bool up = (chirality == 0) != (a.reversed != 0);
    const int begin = up ? 0 : a.extent - 1, step = up ? 1 : -1;
    const scalar corner = (scalar)a.corner[chirality], factor = (scalar)a.factor;
    auto load = [&](const Spinors& f, int s, Part& x) {
        STORAGE::template load_part<SPINOR_REALS>(g, spinor_block(f, slice, site.parity, vector + s), site.slot,
                                                  PART * part, x.c);
    };
    Part z, x, y;
    UNROLL for (int i = 0; i < PART; i++) z.c[i] = broadcast(0);
    if (corner != 0) {
        for (int n = 0; n < a.extent; n++) {
            const scalar* const row = table + COEFFICIENTS * (begin + n * step);
            load(a.source, begin + n * step, x);
            UNROLL for (int i = 0; i < PART; i++) z.c[i] = row[0] * x.c[i] + row[1] * z.c[i];
        }
        UNROLL for (int i = 0; i < PART; i++) z.c[i] = corner * z.c[i];
    }
    for (int n = 0; n < a.extent; n++) {
        const int s = begin + n * step;
        const scalar* const row = table + COEFFICIENTS * s;
        load(a.source, s, x);
        UNROLL for (int i = 0; i < PART; i++) {
            const real before = z.c[i];
            z.c[i] = row[0] * x.c[i] + row[1] * before;
            y.c[i] = row[2] * z.c[i] + row[3] * before;
        }
        if (a.other.data) {
            load(a.other, s, x);
            UNROLL for (int i = 0; i < PART; i++) y.c[i] = x.c[i] + factor * y.c[i];
        } else {
            UNROLL for (int i = 0; i < PART; i++) y.c[i] = factor * y.c[i];
        }
        each(spinor_block(a.target, slice, site.parity, vector + s), y);
    }
}

INLINE void fifth_direction_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int vector = 0; vector < a.vectors; vector += a.extent) {
        if constexpr (STORAGE::COUNTS) {
            ROLLED
            for (int part = 0; part < PARTS; part++)
                sweep(a, site, vector, part, [&](char* block, const Part& y) {
                    STORAGE::template gather_largest<SPINOR_REALS>(g, block, site.slot, part == 0, y.c);
                });
        }
        ROLLED
        for (int part = 0; part < PARTS; part++)
            sweep(a, site, vector, part, [&](char* block, const Part& y) {
                STORAGE::template store_part<SPINOR_REALS>(g, block, site.slot, PART * part, part == PARTS - 1, y.c);
            });
    }
}

SITE_KERNEL(fifth_direction, fifth_direction_site)
