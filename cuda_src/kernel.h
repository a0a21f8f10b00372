// From the body for one site to something a device can launch.
//
//   SITE_KERNEL(name, Arguments, body)        body(arguments, site)
//   SWEEP_KERNEL(name, Arguments, body)       the same, and name_sweep: eight steps in one launch;
//                                             body<true> stores neighbours' copies of links, too
//   SUM_KERNEL(name, Arguments, K, body)      body(arguments, site, real (&values)[K])
//
// Arguments begin with `Geometry geometry; Work work;`. A sum kernel's have `double* sums` too, where
// the sums over fixed pieces of a slice go: [slice][piece][K]. Which site is in which piece
// does not depend on threads or slabs, so neither does any sum.
#pragma once

#include "lattice.h"

#ifdef __CUDACC__

// A thread block is a tile of the lattice: sites share most of their neighbours with others of the
// tile, whose links the multiprocessor's cache then holds.
struct Tile {
    Divisor z;        // extent along z of a tile; those along x (halved) and y are the block's
    Divisor tiles_z;  // tiles along z
    int t;            // extent along t; the last may reach beyond the work
};

template <class A> INLINE Site my_site(const A& a, const Tile& tile) {
    const Geometry& g = a.geometry;
    const int half_x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int in_t = tile.z.quotient(threadIdx.z), in_z = threadIdx.z - in_t * (int)tile.z.divisor;
    int rest = tile.tiles_z.quotient(blockIdx.z);
    const int z = (blockIdx.z - rest * (int)tile.tiles_z.divisor) * (int)tile.z.divisor + in_z;
    int parity = a.work.parity;
    if (parity == 2) {
        parity = rest & 1;
        rest >>= 1;
    }
    const int t = a.work.t_begin + (rest * tile.t + in_t) * a.work.t_step;
    const int x = 2 * half_x + ((parity + y + z + lattice_t(g, t)) & 1);
    return {x, y, z, t, parity, (z * (int)g.y.divisor + y) * (int)g.half_x.divisor + half_x};
}

template <class A> INLINE bool in_work(const A& a, const Site& site) {
    return site.t < a.work.t_begin + a.work.slices * a.work.t_step;
}

template <int K> INLINE void store_block_sums(const real (&values)[K], double* sums) {
    __shared__ double tree[K][MAX_THREADS];
    const int me = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    UNROLL for (int k = 0; k < K; k++) tree[k][me] = values[k];
    for (int width = 512; width > 0; width /= 2) {
        __syncthreads();
        if (me < width && me + width < threads)
            UNROLL for (int k = 0; k < K; k++) tree[k][me] += tree[k][me + width];
    }
    const int piece = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (me == 0)
        UNROLL for (int k = 0; k < K; k++) sums[piece * K + k] = tree[k][0];
}

#define SITE_KERNEL(NAME, ARGUMENTS, BODY)                                                     \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)                      \
        NAME(const ARGUMENTS a, const Tile tile) {                                             \
        const Site site = my_site(a, tile);                                                    \
        if (in_work(a, site)) BODY(a, site);                                                   \
    }

// Waits until all blocks have come here so often that `target` arrivals were counted, and sees what
// they wrote. All blocks must be resident at once.
INLINE void wait_for_grid(unsigned* arrived, unsigned target) {
    __syncthreads();
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        arrive(arrived);
        while ((int)(arrivals(arrived) - target) < 0) {}
    }
    __syncthreads();
}

constexpr int SWEEP = 8;  // steps: four directions, two parities
constexpr int SWEEP_THREADS = 256;  // of a block at most, each with as many registers as it wants
template <class A> struct Steps {
    A step[SWEEP];
};

// A lattice so small that all its blocks are resident at once waits for launches more than for
// anything else; here a sweep is one launch, or several are, if they have the same arguments.
#define SWEEP_KERNEL(NAME, ARGUMENTS, BODY)                                                    \
    SITE_KERNEL(NAME, ARGUMENTS, BODY<true>)                                                   \
    extern "C" __global__ void __launch_bounds__(SWEEP_THREADS, 1) NAME##_sweep(               \
        const __grid_constant__ Steps<ARGUMENTS> steps, const Tile tile, unsigned* arrived, unsigned before,   \
        int times) {                                                                           \
        const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;                             \
        ROLLED for (int i = 0; i < SWEEP * times; i++) {                                       \
            const ARGUMENTS& a = steps.step[i % SWEEP];                                        \
            const Site site = my_site(a, tile);                                                \
            if (in_work(a, site)) BODY<false>(a, site);                                        \
            wait_for_grid(arrived, before + (i + 1) * blocks);                                 \
        }                                                                                      \
    }

#define SUM_KERNEL(NAME, ARGUMENTS, K, BODY)                                                   \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)                      \
        NAME(const ARGUMENTS a, const Tile tile) {                                             \
        real values[K] = {};                                                                   \
        BODY(a, my_site(a, tile), values);                                                     \
        store_block_sums<K>(values, a.sums);                                                   \
    }

#else

constexpr int PIECE = 32;  // slots summed to one piece

INLINE long long items_of(const Work& work, int items) {
    return (long long)work.slices * (work.parity < 2 ? 1 : 2) * items;
}

// Calls f(n, t, parity, i) for begin <= n < end, where n numbers the `items` of all slices, those from
// i = first on.
template <class F>
INLINE void each_item(const Work& work, int first, int items, long long begin, long long end, F f) {
    const int parities = work.parity < 2 ? 1 : 2, last = first + items;
    int block = (int)(begin / items), i = first + (int)(begin % items);
    for (long long n = begin; n < end; n++) {
        f(n, work.t_begin + block / parities * work.t_step, parities == 1 ? work.parity : block % 2, i);
        if (++i == last) i = first, block++;
    }
}

template <class A> INLINE int slots_of(const A& a) { return a.work.slots ? a.work.slots : a.geometry.slots; }

#define SITE_KERNEL(NAME, ARGUMENTS, BODY)                                                            \
    extern "C" void NAME(const ARGUMENTS* steps, int count, int threads) {                            \
        run_threads(                                                                                  \
            threads, count, [=](int step) { return items_of(steps[step].work, slots_of(steps[step])); }, \
            [=](int step, long long begin, long long end) {                                           \
                const ARGUMENTS a = steps[step];                                                      \
                const int first = a.work.first_slot;                                                  \
                each_item(a.work, first, slots_of(a), begin, end, [&](long long, int t, int parity, int slot) { \
                    BODY(a, locate(a.geometry, t, parity, slot));                                     \
                });                                                                                   \
            });                                                                                       \
    }

#define SWEEP_KERNEL(NAME, ARGUMENTS, BODY) SITE_KERNEL(NAME, ARGUMENTS, BODY<false>)

#define SUM_KERNEL(NAME, ARGUMENTS, K, BODY)                                                          \
    extern "C" void NAME(const ARGUMENTS* steps, int count, int threads) {                            \
        const auto pieces = [](const ARGUMENTS& a) { return (a.geometry.slots + PIECE - 1) / PIECE; }; \
        run_threads(                                                                                  \
            threads, count, [=](int step) { return items_of(steps[step].work, pieces(steps[step])); }, \
            [=](int step, long long begin, long long end) {                                           \
                const ARGUMENTS a = steps[step];                                                      \
                each_item(a.work, 0, pieces(a), begin, end, [&](long long n, int t, int parity, int piece) { \
                    double sum[K] = {};                                                               \
                    for (int i = piece * PIECE; i < (piece + 1) * PIECE && i < a.geometry.slots; i++) { \
                        real values[K] = {};                                                          \
                        BODY(a, locate(a.geometry, t, parity, i), values);                            \
                        for (int k = 0; k < K; k++) sum[k] += lane_sum(values[k]);                    \
                    }                                                                                 \
                    for (int k = 0; k < K; k++) a.sums[n * K + k] = sum[k];                           \
                });                                                                                   \
            });                                                                                       \
    }

#endif
