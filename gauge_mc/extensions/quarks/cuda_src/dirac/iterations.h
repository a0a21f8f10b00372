// Iterations of a solver for several vectors that follow each other without the host. A kernel of the solver ends each
// part of an iteration: it adds up scalar products, and computes coefficients from the sums. Its `Vector` has
// take(part, sums), which says whether the search halts, and the numbers of factors.
//
// The search halts once a vector may need more, because its true residual is due or because it has broken down: the
// state is that before this iteration, and the host goes on with it. What is due is what ResidualWatch in
// gauge_mc/extensions/quarks/solvers says.
//
// The state is [row][vector]; rows from NEXT on are those that the next iteration begins with. With a fifth direction a
// vector of the solver is several of the kernels, for each of which there are factors.
#pragma once

#include "lattice/partial_sums.h"

constexpr int RESIDUAL = 2;  // the part, or one of two that are one, that decides about true residuals
constexpr int SUMS = 1, COEFFICIENTS = 2;  // stages of a part, between which devices wait for each other

constexpr int HIGHEST = 0, LOWEST = 1, SINCE = 2, ITERATIONS = 3;  // what an iteration changes
constexpr int NORM2 = 4, IMAGINARY = 5;                            // a number of the solver, which may be complex
constexpr int KEPT = 6, NEXT = KEPT;
constexpr int LIVE = 2 * KEPT, TARGET = LIVE + 1, GROWN = LIVE + 2, REDUCTION = LIVE + 3, SLOWEST = LIVE + 4;
constexpr int PLATEAU = LIVE + 5, MOST = LIVE + 6;
constexpr int SQUARES = LIVE + 7;  // |r'|^2 for the new residual r'
constexpr int OWN = LIVE + 8;      // the first row that is the solver's

constexpr int HALTS = 4;  // why the search has halted in each part, or 0; of an even number, for the alignment of factors
constexpr int MOST_SLABS = 16;
constexpr int HERE = 1, BEFORE = 2;
constexpr int MOST_SUMS = 3;  // for every vector

struct Arguments {
    Geometry geometry;
    Work work;
    PartialSums partial;  // of the products of every slice of some vectors of the kernels
    double* by_slice[MOST_SLABS];  // [sum][slice][vector][s], for all slices of the lattice, on the devices of all slabs
    double* state;                 // [row][vector]
    double* factors;               // [factor][vector][s][re, im]
    int* halted;                   // [HALTS]
    int* seen;                     // the same in the memory of the host, unless null
    int part, stages, vectors, fifth;
    int own_halt, other_halt;       // the numbers of the halt that this part sets, and of that of the part before
    int first_summed, summed;       // the first vector of the kernels whose sums these are, and their number
    int slab, slabs;                // the number of this slab, and that of all
    int first, slices, all_slices;  // the slab's first slice, the number of its slices, and that of the lattice's
    int product, sums;              // the first of the sums that are needed among the products, and their number
    int arithmetic;                 // how complex numbers are multiplied and divided, if the solver has such
    Shares shares;
};

constexpr double LARGEST = 0x1.fffffffffffffp1023;

INLINE bool usable(double square) { return square > 0 && square <= LARGEST; }

// The state of a vector, which is read and written as a whole, so that a thread waits for the memory once.
template <int ROWS> struct WatchedVector {
    double row[ROWS];

    INLINE WatchedVector(const double* state, int vectors, int vector) {
        UNROLL for (int i = 0; i < ROWS; i++) row[i] = state[i * vectors + vector];
    }
    INLINE void store(double* state, int vectors, int vector) const {
        UNROLL for (int i = 0; i < ROWS; i++)
            if (i < LIVE || i >= SQUARES) state[i * vectors + vector] = row[i];
    }
    INLINE bool live() const { return row[LIVE] != 0; }
    INLINE void begin() {
        UNROLL for (int i = 0; i < KEPT; i++) row[i] = row[NEXT + i];
    }
    // Whether the search halts.
    INLINE bool take_residual(double square) {
        const bool going = live() && square <= LARGEST;
        const double now = root((scalar)square);
        const double highest = now > row[HIGHEST] ? now : row[HIGHEST], iterations = row[ITERATIONS] + live();
        const bool slower = now < row[SLOWEST] * row[LOWEST];
        const double since = slower && going ? 0.0 : row[SINCE] + 1;
        const bool low = now < row[REDUCTION] * highest || now <= row[TARGET], grown = now > row[GROWN];
        const bool ended = since >= row[PLATEAU] || iterations >= row[MOST];
        row[SQUARES] = square;
        row[NEXT + HIGHEST] = highest, row[NEXT + LOWEST] = slower ? now : row[LOWEST];
        row[NEXT + SINCE] = since, row[NEXT + ITERATIONS] = iterations;
        return live() && !(going && !low && !grown && !ended);
    }
};

// The halt on which a part depends is not the one that it sets, since its threads begin and end at different times.
INLINE bool was_halted(const Arguments& a) { return a.halted[a.other_halt] != 0; }
INLINE void halt(const Arguments& a, int why) {
    if (a.halted[a.own_halt] != 0) return;
    a.halted[a.own_halt] = why;
    if (a.seen) a.seen[a.own_halt] = why;
}

template <class Each> INLINE void each_of(const Arguments& a, const Site& site, int vectors, Each each) {
    const int sites = a.geometry.half_x.divisor;
    if (site.slot < sites)
        for (int vector = site.slot; vector < vectors; vector += sites) each(vector);
}

// A thread adds up the products of the vectors for which it computes coefficients, since those of a CPU do both for a
// site before the next one.
INLINE void add_products_up(const Arguments& a, const Site& site, int share, int shares) {
    if (!(a.stages & SUMS) || was_halted(a)) return;
    each_of(a, site, a.vectors, [&](int vector) {
        ROLLED for (int n = share; n < a.sums * a.fifth * a.slices; n += shares) {
            const int t = n % a.slices, of_slices = n / a.slices, k = of_slices / a.fifth;
            const int own = vector * a.fifth + of_slices % a.fifth, summed = own - a.first_summed;
            if (summed < 0 || summed >= a.summed) continue;
            const double sum = sum_of_slice(a.partial, summed * a.slices + t, a.product + k);
            const int place = (k * a.all_slices + a.first + t) * a.vectors * a.fifth + own;
            for (int slab = 0; slab < a.slabs; slab++) a.by_slice[slab][place] = sum;
        }
    });
}

template <class Vector> INLINE void end_part(const Arguments& a, const Site& site, bool here, int share, int) {
    if (!here || !(a.stages & COEFFICIENTS) || share > 0) return;
    if (was_halted(a)) {
        halt(a, BEFORE);
        return;
    }
    each_of(a, site, a.vectors, [&](int vector) {
        const int numbers = a.vectors * a.fifth, first = vector * a.fifth;
        Vector v(a, vector);
        double sums[MOST_SUMS] = {};
        ROLLED for (int k = 0; k < a.sums; k++) {
            double sum = 0;
            const double* const of_slices = a.by_slice[a.slab] + (long long)k * a.all_slices * numbers;
            ROLLED for (int s = 0; s < a.fifth; s++) sum += sum_of_parts(of_slices, a.all_slices, numbers, first + s);
            UNROLL for (int i = 0; i < MOST_SUMS; i++) sums[i] = i == k ? sum : sums[i];
        }
        if (v.take(a.part, sums)) halt(a, HERE);
        v.store(a.state, a.vectors, vector);
        UNROLL for (int i = 0; i < Vector::FACTORS_OF_ALL; i++) {
            if (!(a.part & Vector::part_of(i))) continue;
            for (int s = 0; s < a.fifth; s++) {
                double* const factor = a.factors + 2 * (i * numbers + first + s);
                factor[0] = v.factor[i].re;
                if (Vector::IS_COMPLEX) factor[1] = v.factor[i].im;
            }
        }
    });
}
