// Launch of kernels on a CPU: the threads share the slots of every step.
#pragma once

#include "arch/cpu_team.h"
#include "lattice/geometry.h"

// Number of slots per partial sum.
constexpr int SLOTS_PER_PART = 32;

INLINE long long items_of(const Work& work, int items) {
    return (long long)work.slices * (work.parity < 2 ? 1 : 2) * items;
}

// Call f(n, t, parity, i) for begin <= n < end. n numbers the items of all slices and parities, and i
// numbers the items of one slice and parity, starting at `first`.
template <class F>
INLINE void each_item(const Work& work, int first, int items, long long begin, long long end, F f) {
    const int parities = work.parity < 2 ? 1 : 2, last = first + items;
    int block = (int)(begin / items), i = first + (int)(begin % items);
    for (long long n = begin; n < end; n++) {
        f(n, work.t_begin + block / parities * work.t_step, parities == 1 ? work.parity : block % 2, i);
        if (++i == last) i = first, block++;
    }
}

// Return the sum of what the sites of a slot add to a sum over a slice.
INLINE double slot_sum(const Geometry& g, real values) {
    return lane_sum(values, [&](double value) { return summand(g, value); });
}

// Return whether a site is in one of the rows of the work; launches have all rows.
INLINE bool launched_row(const Work& w, const Site& site) { return site.y % w.rows_y == 0 && site.z % w.rows_z == 0; }

template <class A> INLINE int slots_of(const A& a) { return a.work.slots ? a.work.slots : a.geometry.slots; }
template <class A> INLINE int parts_of(const A& a) { return (a.geometry.slots + SLOTS_PER_PART - 1) / SLOTS_PER_PART; }

template <class A, class Body> INLINE void run_sites(const A* steps, int count, Team& team, Body body) {
    team.share(
        count, [=](int step) { return items_of(steps[step].work, slots_of(steps[step])); },
        [=](int step, long long begin, long long end) {
            const A a = steps[step];
            each_item(a.work, a.work.first_slot, slots_of(a), begin, end, [&](long long, int t, int parity, int slot) {
                body(a, locate(a.geometry, t, parity, slot));
            });
        });
}

// The sums of K values of the sites of a part.
template <int K, int PARTS> struct PartSums;
template <int K> struct PartSums<K, 1> {
    double sums[K] = {};
    INLINE void add(const Geometry& g, const real (&values)[K]) {
        for (int k = 0; k < K; k++) sums[k] += slot_sum(g, values[k]);
    }
    INLINE double sum(int i) const { return sums[i]; }
};
// Sums whose order does not matter, so that lanes are added up at the end.
template <int K> struct PartSums<K, LEVELS> {
    double_real sums[K * LEVELS] = {};
    INLINE void add(const Geometry& g, const real (&values)[K]) {
        for (int k = 0; k < K; k++) {
            double_real rest = within_levels(g, to_double(values[k]));
            Level level = first_level(g);
            for (int i = 0; i < LEVELS; i++, level = next_level(level))
                sums[k * LEVELS + i] = sums[k * LEVELS + i] + take_part(level, rest);
        }
    }
    INLINE double sum(int i) const {
        double all = sums[i][0];
        for (int lane = 1; lane < LANES; lane++) all += sums[i][lane];
        return all;
    }
};

template <int K, int PARTS, class A, class Body> INLINE void run_sums(const A* steps, int count, Team& team, Body body) {
    team.share(
        count, [=](int step) { return items_of(steps[step].work, parts_of(steps[step])); },
        [=](int step, long long begin, long long end) {
            const A a = steps[step];
            each_item(a.work, 0, parts_of(a), begin, end, [&](long long n, int t, int parity, int part) {
                PartSums<K, PARTS> sums;
                for (int i = part * SLOTS_PER_PART; i < (part + 1) * SLOTS_PER_PART && i < a.geometry.slots; i++) {
                    real values[K] = {};
                    body(a, locate(a.geometry, t, parity, i), values);
                    sums.add(a.geometry, values);
                }
                for (int i = 0; i < K * PARTS; i++) a.sums[n * (K * PARTS) + i] = sums.sum(i);
            });
        });
}

// The sums of a part's values in several time slices.
template <int SLICES, int K> struct SliceValues {
    const Geometry& geometry;
    double sums[SLICES][K] = {};
    INLINE void add(int slice, int k, real value) { sums[slice][k] += slot_sum(geometry, value); }
};

template <int SLICES, int K, class A, class Body>
INLINE void run_slice_sums(const A* steps, int count, Team& team, Body body) {
    team.share(
        count, [=](int step) { return items_of(steps[step].work, parts_of(steps[step])); },
        [=](int step, long long begin, long long end) {
            const A a = steps[step];
            const int parts = parts_of(a);
            each_item(a.work, 0, parts, begin, end, [&](long long, int t, int parity, int part) {
                SliceValues<SLICES, K> values = {a.geometry};
                for (int i = part * SLOTS_PER_PART; i < (part + 1) * SLOTS_PER_PART && i < a.geometry.slots; i++)
                    body(a, locate(a.geometry, t, parity, i), values);
                for (int slice = 0; slice < SLICES && t + slice < a.slices; slice++) {
                    const long long n = ((t + slice) * 2LL + ((parity + slice) & 1)) * parts + part;
                    for (int k = 0; k < K; k++) a.sums[n * K + k] = values.sums[slice][k];
                }
            });
        });
}

#define SITE_KERNEL(NAME, BODY)                                                                      \
    extern "C" void NAME(const Arguments* steps, int count, Team* team) {                            \
        run_sites(steps, count, *team, [](const Arguments& a, const Site& site)                    \
                      __attribute__((always_inline)) { BODY(a, site); });                            \
    }

#define SWEEP_KERNEL(NAME, BODY) SITE_KERNEL(NAME, BODY<false>)

#define SUM_KERNEL(NAME, K, BODY) SUM_KERNEL_IN_PARTS(NAME, K, 1, BODY)
#define WIDE_SUM_KERNEL(NAME, K, BODY) SUM_KERNEL_IN_PARTS(NAME, K, PARTS_PER_VALUE, BODY)
#define SUM_KERNEL_IN_PARTS(NAME, K, PARTS, BODY)                                                    \
    extern "C" void NAME(const Arguments* steps, int count, Team* team) {                            \
        run_sums<K, PARTS>(steps, count, *team, [](const Arguments& a, const Site& site, real (&values)[K]) \
                               __attribute__((always_inline)) { BODY(a, site, values); });           \
    }

#define LINK_KERNEL(NAME, BODY)                                                                      \
    INLINE void NAME##_directions(const Arguments& a, const Site& site) {                            \
        ROLLED for (int mu = 0; mu < DIRECTIONS; mu++) BODY(a, site, mu);                            \
    }                                                                                                \
    SITE_KERNEL(NAME, NAME##_directions)

#define BLOCKS_HAVE_MEMORY 0
#define SHARED_KERNEL(NAME, BODY) SHARED_KERNEL_IN_TWO(NAME, BODY, false, no_second_part)
#define SHARED_KERNEL_IN_TWO(NAME, BODY, IN_TWO, SECOND)                                             \
    extern "C" void NAME(const Arguments* steps, int count, Team* team) {                            \
        run_sites(steps, count, *team, [](const Arguments& a, const Site& site)                    \
                      __attribute__((always_inline)) {                                               \
                          BODY(a, site, 0, 1);                                                       \
                          if constexpr (IN_TWO) SECOND(a, site, true, 0, 1);                          \
                      });                                                                            \
    }

#define SLICES_SUM_KERNEL(NAME, SLICES, K, BLOCKS, BODY)                                             \
    extern "C" void NAME(const Arguments* steps, int count, Team* team) {                            \
        run_slice_sums<SLICES, K>(steps, count, *team,                                               \
                                  [](const Arguments& a, const Site& site, SliceValues<SLICES, K>& values) \
                                      __attribute__((always_inline)) { BODY(a, site, values); });    \
    }
