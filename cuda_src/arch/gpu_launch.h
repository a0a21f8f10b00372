// Launch of kernels on a GPU: every thread works on one site per step.
#pragma once

#include "lattice/geometry.h"

// The sites of a thread block: a small box of the lattice. Its sites have most of their neighbours in
// common, so that the links around them are found in the multiprocessor's cache.
struct Tile {
    Divisor z;        // extent along z; the extents along x (halved) and y are those of the block
    Divisor tiles_z;  // number of tiles along z
    int t;            // extent along t; the last tile may extend beyond the work
    Divisor threads;  // threads of a block along z that work on different sites
    Divisor blocks;   // blocks along z that work on different sites
};

// Return this thread's site in the tile with the given place in the grid. If it is PAIRED, the site is even.
template <bool PAIRED = false, class A>
INLINE Site site_in_tile(const A& a, const Tile& tile, int tile_x, int tile_y, int tile_z, int thread_z) {
    const Geometry& g = a.geometry;
    const int half_x = tile_x * blockDim.x + threadIdx.x, y = tile_y * blockDim.y + threadIdx.y;
    const int in_t = tile.z.quotient(thread_z), in_z = thread_z - in_t * (int)tile.z.divisor;
    int rest = tile.tiles_z.quotient(tile_z);
    const int z = (tile_z - rest * (int)tile.tiles_z.divisor) * (int)tile.z.divisor + in_z;
    int parity = PAIRED ? 0 : a.work.parity;
    if (parity == 2) {
        parity = rest & 1;
        rest >>= 1;
    }
    const int slice = a.work.t_begin + (rest * tile.t + in_t) * a.work.t_step;
    const int replica = g.period.quotient(slice), t = slice - replica * g.slices;
    const int x = 2 * half_x + ((parity + y + z + lattice_t(g, t)) & 1);
    return {x, y, z, t, parity, (z * (int)g.y.divisor + y) * (int)g.half_x.divisor + half_x, replica};
}

template <class A> INLINE Site my_site(const A& a, const Tile& tile) {
    return site_in_tile(a, tile, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.z);
}

// Set y and z to those of a site's row. Launches do not have other rows than those of the work; they number these.
INLINE bool launched_row(const Work& w, Site& site) {
    site.y *= w.rows_y, site.z *= w.rows_z;
    return true;
}

template <class A> INLINE bool in_work(const A& a, const Site& site) {
    return slice_in_memory(a.geometry, site) < a.work.t_begin + a.work.slices * a.work.t_step;
}

// Add up numbers of a block's threads, which are in `tree`, as a binary tree, and store every STRIDE-th sum.
template <int STRIDE, int K> INLINE void store_tree_sums(double (&tree)[K][MAX_THREADS], int me, double* sums) {
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    for (int width = 512; width > 0; width /= 2) {
        __syncthreads();
        if (me < width && me + width < threads)
            UNROLL for (int k = 0; k < K; k++) tree[k][me] += tree[k][me + width];
    }
    if (me == 0)
        UNROLL for (int k = 0; k < K; k++) sums[k * STRIDE] = tree[k][0];
}

// Add up the values of a block's threads, or the parts of them, and store the partial sums.
template <int PARTS, int K> INLINE void store_block_sums(const Geometry& g, const real (&values)[K], double* sums) {
    __shared__ double tree[K][MAX_THREADS];
    const int me = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    sums += ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * (K * PARTS);
    if constexpr (PARTS == 1) {
        UNROLL for (int k = 0; k < K; k++) tree[k][me] = summand(g, values[k]);
        store_tree_sums<1>(tree, me, sums);
    } else {
        double rest[K];
        UNROLL for (int k = 0; k < K; k++) rest[k] = within_levels(g, to_double(values[k]));
        Level level = first_level(g);
        ROLLED for (int i = 0; i < PARTS; i++, level = next_level(level)) {
            UNROLL for (int k = 0; k < K; k++) tree[k][me] = take_part(level, rest[k]);
            store_tree_sums<PARTS>(tree, me, sums + i);
            __syncthreads();
        }
    }
}

constexpr int SUBSETS = 4;  // threads that add up one value of a block together

// The values of a block's sites in several time slices, in shared memory. Every row is permuted, so that threads that
// add up different values read different banks.
template <int SLICES, int K> struct SliceValues {
    const Geometry& geometry;
    real (*rows)[MAX_THREADS];
    INLINE real& at(int row, int thread) const { return rows[row][thread ^ (row % 8 * SUBSETS)]; }
    INLINE void add(int slice, int k, real value) {
        const int me = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        at(slice * K + k, me) = value;  // the thread's only site
    }

    // The sum over every SUBSETS-th thread from `first` on takes the place of their values.
    INLINE void put_sum(int row, int first, double sum) const {
        if constexpr (REAL_BYTES == 8) {
            at(row, first) = sum;
        } else {
            word low, high;
            double_bits(sum, low, high);
            at(row, first) = __uint_as_float(low), at(row, first + SUBSETS) = __uint_as_float(high);
        }
    }
    INLINE double sum(int row, int first) const {
        if constexpr (REAL_BYTES == 8) return at(row, first);
        else return double_of_bits(__float_as_uint(at(row, first)), __float_as_uint(at(row, first + SUBSETS)));
    }
};

// Return the sum of a row's values of the threads first, first + WIDTH, ...; the order of additions is that of
// store_block_sums.
template <int WIDTH, class V> INLINE double tree_sum(const V& values, int row, int first, int threads) {
    if constexpr (WIDTH >= MAX_THREADS) {
        return first < threads ? summand(values.geometry, values.at(row, first)) : 0.0;
    } else {
        const double low = tree_sum<2 * WIDTH>(values, row, first, threads);
        return low + tree_sum<2 * WIDTH>(values, row, first + WIDTH, threads);
    }
}

// A tile of columns: its sites in some slices, followed by the same sites in the slices above them. Blocks that work on
// the same columns are launched one after the other, so that they find the slices above in the cache.
struct Columns {
    Site site;        // the lowest site of this thread's column
    int tile, tiles;  // the number of the tile among those of one parity, and their number
};
template <class A> INLINE Columns my_columns(const A& a, const Tile& tile) {
    const unsigned tiles_z = tile.tiles_z.divisor, tiles = gridDim.x * gridDim.y * tiles_z;
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned which = block / a.work.slices, group = block - which * a.work.slices;
    const unsigned parity = which / tiles, number = which - parity * tiles;
    const unsigned row = number / gridDim.x, z = row / gridDim.y;
    const unsigned tile_z = (group * 2 + parity) * tiles_z + z;
    return {site_in_tile(a, tile, number - row * gridDim.x, row - z * gridDim.y, tile_z, threadIdx.z), (int)number, (int)tiles};
}

// Add up the values of a block's threads, and store the partial sums.
template <int SLICES, int K, class A>
INLINE void store_slice_sums(const A& a, const Columns& columns, const SliceValues<SLICES, K>& values) {
    const int me = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    __syncthreads();
    ROLLED for (int n = me; n < SLICES * K * SUBSETS; n += threads) {
        const int row = n / SUBSETS, first = n % SUBSETS;
        values.put_sum(row, first, tree_sum<SUBSETS>(values, row, first, threads));
    }
    __syncthreads();
    ROLLED for (int row = me; row < SLICES * K; row += threads) {
        const int slice = row / K, k = row % K, t = columns.site.t + slice;
        if (t >= a.slices) break;
        const double sum = (values.sum(row, 0) + values.sum(row, 2)) + (values.sum(row, 1) + values.sum(row, 3));
        const int part = (t * 2 + ((columns.site.parity + slice) & 1)) * columns.tiles + columns.tile;
        a.sums[(long long)part * K + k] = k < a.count ? sum : 0.0;
    }
}

// Count the arrival of a block at a barrier of the grid. A thread that reads the count also sees all
// that the block wrote before its __syncthreads(). __threadfence() would order more than that and take
// longer.
INLINE void arrive(unsigned* arrived) {
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
#elif defined(__HIP__)
    __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
#else
    atomicAdd(arrived, 1);
#endif
}
INLINE unsigned arrivals(const unsigned* arrived) {
#ifdef __CUDA_ARCH__
    unsigned seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
    return seen;
#elif defined(__HIP__)
    return __hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
#else
    return *(volatile const unsigned*)arrived;
#endif
}

// Wait until the count of arrivals has reached `target`; what all blocks wrote before is then visible.
// All blocks must be resident at the same time.
INLINE void wait_for_grid(unsigned* arrived, unsigned target) {
    __syncthreads();
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        arrive(arrived);
        while ((int)(arrivals(arrived) - target) < 0) {}
    }
    __syncthreads();
}

// Wait until the launches before this one have ended, and let the blocks of the next one begin as soon as there is room.
// Blocks wait only if a graph has let them begin early; see gauge_mc/devices/cuda/early_starts.py.
INLINE void wait_for_launches() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

constexpr int SWEEP = 8;            // steps of a sweep: four directions, two parities
constexpr int SWEEP_THREADS = 256;  // maximum number of threads per block if whole sweeps run in one launch
template <class A> struct Steps {
    A step[SWEEP];
};

#define SITE_KERNEL(NAME, BODY)                                                                \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)                      \
        NAME(const Arguments a, const Tile tile) {                                             \
        wait_for_launches();                                                                   \
        const Site site = my_site(a, tile);                                                    \
        if (in_work(a, site)) BODY(a, site);                                                   \
    }

#define LINK_KERNEL(NAME, BODY)                                                                \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)                      \
        NAME(const Arguments a, const Tile tile) {                                             \
        wait_for_launches();                                                                   \
        const int mu = blockIdx.z % DIRECTIONS, tile_z = blockIdx.z / DIRECTIONS;              \
        Site site = site_in_tile<true>(a, tile, blockIdx.x, blockIdx.y, tile_z, threadIdx.z);  \
        if (!in_work(a, site)) return;                                                         \
        ROLLED for (int parity = 0; parity < 2; parity++) {                                    \
            if (GROUP::N == 2) { /* each mu has code of its own: addresses take much of the time */ \
                UNROLL for (int n = 0; n < DIRECTIONS; n++) if (n == mu) BODY(a, site, n);     \
            } else {                                                                           \
                BODY(a, site, mu);                                                             \
            }                                                                                  \
            site.parity = 1;                                                                   \
            site.x ^= 1; /* the sites of a slot are neighbours along x */                      \
        }                                                                                      \
    }

// Memory, a barrier and sites that a block of a SHARED_KERNEL has in common, with this thread's number among the threads
// with the same share.
#define BLOCKS_HAVE_MEMORY 1
#define BLOCK_MEMORY __shared__
INLINE void wait_for_block() { __syncthreads(); }
struct BlockSites {
    int count, mine;
    INLINE explicit BlockSites(int shares) : count(blockDim.x * blockDim.y * blockDim.z / shares) {
        mine = ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % count;
    }
};

// Threads whose numbers are near have different sites, so that they read neighbouring packets.
#define SHARED_KERNEL(NAME, BODY) SHARED_KERNEL_IN_TWO(NAME, BODY, false, no_second_part)
#define SHARED_KERNEL_IN_TWO(NAME, BODY, IN_TWO, SECOND)                                       \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)                      \
        NAME(const Arguments a, const Tile tile) {                                             \
        wait_for_launches();                                                                   \
        const int thread = tile.threads.quotient(threadIdx.z), block = tile.blocks.quotient(blockIdx.z); \
        const int thread_z = threadIdx.z - thread * (int)tile.threads.divisor;                 \
        const int tile_z = blockIdx.z - block * (int)tile.blocks.divisor;                      \
        const Site site = site_in_tile(a, tile, blockIdx.x, blockIdx.y, tile_z, thread_z);     \
        const int share = block * a.shares.threads + thread;                                   \
        if (in_work(a, site)) BODY(a, site, share, a.shares.threads * a.shares.blocks);        \
        if constexpr (IN_TWO) {                                                                \
            __syncthreads();                                                                   \
            SECOND(a, site, in_work(a, site), thread, a.shares.threads);                       \
        }                                                                                      \
    }

// If a lattice is so small that all its blocks are resident at once, launches take most of the time.
// Then a whole sweep, or several sweeps with the same arguments, run in one launch.
#define SWEEP_KERNEL(NAME, BODY)                                                               \
    SITE_KERNEL(NAME, BODY<true>)                                                              \
    extern "C" __global__ void __launch_bounds__(SWEEP_THREADS, 1) NAME##_sweep(               \
        const __grid_constant__ Steps<Arguments> steps, const Tile tile, unsigned* arrived,    \
        unsigned before, int times) {                                                          \
        wait_for_launches();                                                                   \
        const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;                             \
        ROLLED for (int i = 0; i < SWEEP * times; i++) {                                       \
            const Arguments& a = steps.step[i % SWEEP];                                        \
            const Site site = my_site(a, tile);                                                \
            if (in_work(a, site)) BODY<false>(a, site);                                        \
            wait_for_grid(arrived, before + (i + 1) * blocks);                                 \
        }                                                                                      \
    }

#define SUM_KERNEL(NAME, K, BODY) SUM_KERNEL_IN_PARTS(NAME, K, 1, BODY)
#define WIDE_SUM_KERNEL(NAME, K, BODY) SUM_KERNEL_IN_PARTS(NAME, K, PARTS_PER_VALUE, BODY)
#define SUM_KERNEL_IN_PARTS(NAME, K, PARTS, BODY)                                              \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, MIN_BLOCKS)                      \
        NAME(const Arguments a, const Tile tile) {                                             \
        wait_for_launches();                                                                   \
        real values[K] = {};                                                                   \
        BODY(a, my_site(a, tile), values);                                                     \
        store_block_sums<PARTS>(a.geometry, values, a.sums);                                   \
    }

#define SLICES_SUM_KERNEL(NAME, SLICES, K, BLOCKS, BODY)                                       \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, BLOCKS)                          \
        NAME(const Arguments a, const Tile tile) {                                             \
        wait_for_launches();                                                                   \
        __shared__ real memory[SLICES * K][MAX_THREADS];                                       \
        SliceValues<SLICES, K> values = {a.geometry, memory};                                  \
        const Columns columns = my_columns(a, tile);                                           \
        BODY(a, columns.site, values);                                                         \
        store_slice_sums(a, columns, values);                                                  \
    }
