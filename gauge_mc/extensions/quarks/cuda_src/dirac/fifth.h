// Operators along the fifth direction of vectors psi_s(x) that are diagonal in the sites:
//   y = u + factor N Q^{-1} psi, without u if it is null,
// where N and Q act on both chiralities as bidiagonal matrices with a corner. For the upper components, or for the lower
// ones if the directions are exchanged by `reversed`,
//   (Q z)_s = q_s z_s + q'_s z_{s-1},  z_{-1} = -m z_{L-1},
// and for the others the same with s+1, and z_L = -m z_0, instead of s-1 and z_{-1}. A recursion finds z_{-1} in a first
// pass, and y in a second one, in O(L) operations. Coefficients of a slice are 1 / q, -q' / q, n and n'.
#pragma once

#include "dirac/column.h"
#include "dirac/spinors.h"

constexpr int COEFFICIENTS = 4;  // reals of a slice and a chirality

struct Fifth {
    Spinors source, other, target;  // psi, u and y; psi or u may be the same as y unless the storage COUNTS and psi is not KEPT
    const void* coefficients;       // [chirality][s][COEFFICIENTS], reals of the arithmetic
    double corner[2];               // of each chirality: z_{-1} is that of the first pass, which ends with z_{L-1}, times it
    double factor;
    int extent, vectors, reversed;  // the extent L, and the number of vectors with all s
};

// A part of the spinors of a site: a chirality of COLOURS colours. If the storage COUNTS, the numbers of a site have a
// unit in common, which is read once for all colours where there are registers for them.
constexpr int CHIRAL = SPINOR_REALS / GROUP::N / 2;  // reals of a colour and a chirality
// psi of all slices is KEPT, or it is read again: both passes need it, and what all threads read does not fit the caches.
constexpr bool KEPT = COLUMN > 0;
constexpr int COLOURS = STORAGE::COUNTS && ADDRESSES_ARE_COSTLY && !KEPT ? GROUP::N : 1;
constexpr int REALS = CHIRAL * COLOURS, PARTS = SPINOR_REALS / REALS;

struct Part {
    real c[REALS];
};

struct Column {
    Part psi[KEPT ? COLUMN : 1];
};

// Call each(n) for all steps along the fifth direction.
template <class Each> INLINE void all_steps(const Fifth& a, Each each) {
    if constexpr (KEPT) {
        UNROLL for (int n = 0; n < COLUMN; n++) each(n);
    } else {
        for (int n = 0; n < a.extent; n++) each(n);
    }
}

// A sweep along the fifth direction for part number `part`, whose chirality is the number modulo 2.
struct Sweep {
    const Fifth& a;
    const Geometry& g;
    const Site& site;
    int vector, part;
    const scalar* table;  // the coefficients
    int begin, step;      // the first s, and the step to the next

    INLINE Sweep(const Fifth& a, const Geometry& g, const Site& site, int vector, int part)
        : a(a), g(g), site(site), vector(vector), part(part),
          table((const scalar*)a.coefficients + (part & 1) * COEFFICIENTS * a.extent) {
        const bool up = ((part & 1) == 0) != (a.reversed != 0);
        begin = up ? 0 : a.extent - 1, step = up ? 1 : -1;
    }
    // The first of the reals of one of the part's colours.
    INLINE int first(int colour) const { return CHIRAL * (2 * (part / 2 * COLOURS + colour) + (part & 1)); }
    INLINE char* block(const Spinors& f, int s) const {
        return spinor_block(f, slice_in_memory(g, site), site.parity, vector + s);
    }
    INLINE void load(const Spinors& f, int s, Part& x) const {
        UNROLL for (int colour = 0; colour < COLOURS; colour++) {
            real c[CHIRAL];
            STORAGE::template load_part<SPINOR_REALS>(g, block(f, s), site.slot, first(colour), c);
            UNROLL for (int i = 0; i < CHIRAL; i++) x.c[CHIRAL * colour + i] = c[i];
        }
    }

    // Keep psi of all slices, if there are registers for it.
    INLINE void keep(Column& column) const {
        if constexpr (KEPT) all_steps(a, [&](int n) { load(a.source, begin + n * step, column.psi[n]); });
    }
    INLINE void get(const Column& column, int n, Part& x) const {
        if constexpr (KEPT)
            x = column.psi[n];
        else
            load(a.source, begin + n * step, x);
    }

    // Set z to z_{-1}.
    INLINE void first_pass(const Column& column, Part& z) const {
        UNROLL for (int i = 0; i < REALS; i++) z.c[i] = broadcast(0);
        const scalar corner = (scalar)a.corner[part & 1];
        if (corner == 0) return;
        all_steps(a, [&](int n) {
            const scalar* const row = table + COEFFICIENTS * (begin + n * step);
            Part x;
            get(column, n, x);
            UNROLL for (int i = 0; i < REALS; i++) z.c[i] = row[0] * x.c[i] + row[1] * z.c[i];
        });
        UNROLL for (int i = 0; i < REALS; i++) z.c[i] = corner * z.c[i];
    }

    // Call each(s, y) for all s, given z_{-1}.
    template <class Each> INLINE void second_pass(const Column& column, Part z, Each each) const {
        const scalar factor = (scalar)a.factor;
        all_steps(a, [&](int n) {
            const int s = begin + n * step;
            const scalar* const row = table + COEFFICIENTS * s;
            Part x, y;
            get(column, n, x);
            UNROLL for (int i = 0; i < REALS; i++) {
                const real before = z.c[i];
                z.c[i] = row[0] * x.c[i] + row[1] * before;
                y.c[i] = row[2] * z.c[i] + row[3] * before;
            }
            if (a.other.data) {
                load(a.other, s, x);
                UNROLL for (int i = 0; i < REALS; i++) y.c[i] = x.c[i] + factor * y.c[i];
            } else {
                UNROLL for (int i = 0; i < REALS; i++) y.c[i] = factor * y.c[i];
            }
            each(s, y);
        });
    }

    // Call each(first real, numbers, whether they are the last of the site) for all colours of the part.
    template <class Each> INLINE void each_colour(const Part& y, Each each) const {
        UNROLL for (int colour = 0; colour < COLOURS; colour++) {
            real c[CHIRAL];
            UNROLL for (int i = 0; i < CHIRAL; i++) c[i] = y.c[CHIRAL * colour + i];
            each(first(colour), c, part == PARTS - 1 && colour == COLOURS - 1);
        }
    }
    INLINE void store(char* to, const Part& y) const {
        each_colour(y, [&](int first, const real (&c)[CHIRAL], bool end) {
            STORAGE::template store_part<SPINOR_REALS>(g, to, site.slot, first, end, c);
        });
    }
    // The same, given the largest modulus of the site's numbers.
    INLINE void store_within(char* to, real largest, const Part& y) const {
        each_colour(y, [&](int first, const real (&c)[CHIRAL], bool end) {
            STORAGE::template store_part_within<SPINOR_REALS>(g, to, site.slot, first, end, largest, c);
        });
    }
};

#if BLOCKS_HAVE_MEMORY
// The same where the storage COUNTS and psi is KEPT, so that the result may take its place: PARTS threads of a block find
// the largest modulus of a site's numbers together. All threads of the block must call it, those without a site too.
INLINE void multiply_together(const Fifth& a, const Geometry& g, const Site& site, bool here, int share, int shares) {
    BLOCK_MEMORY unsigned memory[KEPT ? COLUMN * (MAX_THREADS / PARTS) : 1];
    const BlockSites sites(shares);
    const int groups = shares / PARTS, group = share / PARTS, part = share - group * PARTS;
    auto largest = [&](int s) { return &memory[(s * groups + group) * sites.count + sites.mine]; };
    ROLLED
    for (int first = 0; first < a.vectors; first += groups * a.extent) {
        const int vector = first + group * a.extent;
        const bool working = here && group < groups && vector < a.vectors;
        const Sweep sweep(a, g, site, vector, part);
        Column column;
        Part z = {};
        if (working) {
            sweep.keep(column);
            sweep.first_pass(column, z);
            if (part == 0) all_steps(a, [&](int n) { *largest(n) = 0; });
        }
        wait_for_block();
        if (working) {
            sweep.second_pass(column, z, [&](int s, const Part& y) {
                max_atomically(largest(s), float_bits(STORAGE::largest_of(y.c)));
            });
        }
        wait_for_block();
        if (working) {
            sweep.second_pass(column, z, [&](int s, const Part& y) {
                sweep.store_within(sweep.block(a.target, s), from_double(double_of_float(*largest(s))), y);
            });
        }
        wait_for_block();
    }
}
#else
static_assert(!(KEPT && STORAGE::COUNTS), "threads of a GPU do this together");
INLINE void multiply_together(const Fifth&, const Geometry&, const Site&, bool, int, int) {}
#endif

// Do part number `share` of the work on a site, which is divided into so many shares.
INLINE void multiply_along_fifth(const Fifth& a, const Geometry& g, const Site& site, int share, int shares) {
    Column column;
    if constexpr (STORAGE::COUNTS) {
        ROLLED
        for (int vector = share * a.extent; vector < a.vectors; vector += shares * a.extent) {
            Part z[PARTS];
            UNROLL_ON_GPU_IF(COLOURS > 1) for (int part = 0; part < PARTS; part++) {
                const Sweep sweep(a, g, site, vector, part);
                sweep.first_pass(column, z[part]);
                sweep.second_pass(column, z[part], [&](int s, const Part& y) {
                    STORAGE::template gather_largest<SPINOR_REALS>(g, sweep.block(a.target, s), site.slot, part == 0, y.c);
                });
            }
            UNROLL_ON_GPU_IF(COLOURS > 1) for (int part = 0; part < PARTS; part++) {
                const Sweep sweep(a, g, site, vector, part);
                sweep.second_pass(column, z[part], [&](int s, const Part& y) { sweep.store(sweep.block(a.target, s), y); });
            }
        }
    } else {
        ROLLED
        for (int n = share; n < PARTS * (a.vectors / a.extent); n += shares) {
            const Sweep sweep(a, g, site, n / PARTS * a.extent, n % PARTS);
            Part z;
            sweep.keep(column);
            sweep.first_pass(column, z);
            sweep.second_pass(column, z, [&](int s, const Part& y) { sweep.store(sweep.block(a.target, s), y); });
        }
    }
}
