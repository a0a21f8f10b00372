// From the body for one site to something a device can launch.
//
//   SITE_KERNEL(name, Arguments, body)        body(arguments, site)
//   SUM_KERNEL(name, Arguments, K, body)      body(arguments, site, real (&values)[K])
//
// Arguments begin with `Geometry geometry; Work work;`. A sum kernel's have `double* sums` too, where
// the sums over fixed pieces of a slice go: [t - t_begin][piece][K]. Which site is in which piece
// does not depend on threads or slabs, so neither does any sum.
#pragma once

#include "lattice.h"

#ifdef __CUDACC__

#ifndef THREADS
#define THREADS 128
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif

template <class A> INLINE bool my_site(const A& a, Site& site) {
    const int slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot >= a.geometry.slots) return false;
    const int parity = a.work.parity < 2 ? a.work.parity : blockIdx.z;
    site = locate(a.geometry, a.work.t_begin + blockIdx.y, parity, slot);
    return true;
}

template <int K> INLINE void store_block_sums(const real (&values)[K], double* sums) {
    __shared__ double tree[K][THREADS];
    UNROLL for (int k = 0; k < K; k++) tree[k][threadIdx.x] = values[k];
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            UNROLL for (int k = 0; k < K; k++) tree[k][threadIdx.x] += tree[k][threadIdx.x + width];
    }
    const int piece = (blockIdx.y * gridDim.z + blockIdx.z) * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0)
        UNROLL for (int k = 0; k < K; k++) sums[piece * K + k] = tree[k][0];
}

#define SITE_KERNEL(NAME, ARGUMENTS, BODY)                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const ARGUMENTS a) {  \
        Site site;                                                                               \
        if (my_site(a, site)) BODY(a, site);                                                     \
    }

#define SUM_KERNEL(NAME, ARGUMENTS, K, BODY)                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const ARGUMENTS a) {  \
        Site site;                                                                               \
        real values[K] = {};                                                                     \
        if (my_site(a, site)) BODY(a, site, values);                                             \
        store_block_sums<K>(values, a.sums);                                                     \
    }

#else

constexpr int PIECE = 32;  // slots summed to one piece

// Calls f(t, parity, i) for this thread's share of `items` a slice and parity.
template <class F> INLINE void share(const Work& work, int items, int thread, int threads, F f) {
    const int parities = work.parity < 2 ? 1 : 2;
    const long long all = (long long)(work.t_end - work.t_begin) * parities * items;
    const long long end = all * (thread + 1) / threads;
    for (long long n = all * thread / threads; n < end; n++) {
        const int block = (int)(n / items);
        f(work.t_begin + block / parities, parities == 1 ? work.parity : block % 2, (int)(n % items), n);
    }
}

#define SITE_KERNEL(NAME, ARGUMENTS, BODY)                                                       \
    extern "C" void NAME(const ARGUMENTS* steps, int count, int threads) {                       \
        run_threads(threads, count, [=](int step, int thread) {                                  \
            const ARGUMENTS a = steps[step];                                                     \
            share(a.work, a.geometry.slots, thread, threads,                                     \
                  [&](int t, int parity, int slot, long long) {                                  \
                      BODY(a, locate(a.geometry, t, parity, slot));                              \
                  });                                                                            \
        });                                                                                      \
    }

#define SUM_KERNEL(NAME, ARGUMENTS, K, BODY)                                                     \
    extern "C" void NAME(const ARGUMENTS* steps, int count, int threads) {                       \
        run_threads(threads, count, [=](int step, int thread) {                                  \
            const ARGUMENTS a = steps[step];                                                     \
            const int pieces = (a.geometry.slots + PIECE - 1) / PIECE;                           \
            share(a.work, pieces, thread, threads, [&](int t, int parity, int piece, long long n) { \
                double sum[K] = {};                                                              \
                for (int i = 0; i < PIECE && piece * PIECE + i < a.geometry.slots; i++) {        \
                    real values[K] = {};                                                         \
                    BODY(a, locate(a.geometry, t, parity, piece * PIECE + i), values);           \
                    for (int k = 0; k < K; k++) sum[k] += lane_sum(values[k]);                   \
                }                                                                                \
                for (int k = 0; k < K; k++) a.sums[n * K + k] = sum[k];                          \
            });                                                                                  \
        });                                                                                      \
    }

#endif
