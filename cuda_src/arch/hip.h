// What AMD GPUs have under other names than NVIDIA's, or not at all. Everything else in gpu.h is the same for both.
#pragma once

#include <hip/hip_runtime.h>

#define VECTOR_REGISTER "v"  // the constraint of assembly code for a register of a thread

// Loads and stores that the caches need not keep.
template <class P> __device__ __forceinline__ P __ldcs(const P* at) { return *at; }
template <class P> __device__ __forceinline__ void __stcs(P* at, const P& value) { *at = value; }

// Arguments of kernels are constants anyway.
#define __grid_constant__

#ifdef __AMDGCN__  // by a compiler for GPUs, which emulated ones are not
// The second number of launch bounds is that of resident blocks, as for NVIDIA GPUs, and not that of waves for each of
// the SIMD units of a compute unit.
#ifdef __GFX9__
#define THREADS_OF_SIMD_UNITS (4 * 64)
#else
#define THREADS_OF_SIMD_UNITS (2 * 32)
#endif
#define WAVES_OF(threads) ((threads) < THREADS_OF_SIMD_UNITS ? 1 : (threads) / THREADS_OF_SIMD_UNITS)
#undef __launch_bounds__
#define __launch_bounds__(threads, blocks) \
    __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(WAVES_OF((threads) * (blocks)))))

// See arch.h. Pointers to memory are of another type than those to arguments: otherwise Clang reads both by one pointer, for
// which it copies all arguments into the scratch memory of the thread.
#define OWN_READS_OF_MEMORY
typedef const __attribute__((address_space(1))) double* MemoryPointer;
template <class T> __device__ __forceinline__ T in_memory(const T* at) {
    static_assert(sizeof(T) % sizeof(double) == 0, "these are structures of numbers in double precision");
    T value;
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / sizeof(double); i++) ((double*)&value)[i] = ((MemoryPointer)at)[i];
    return value;
}
template <int N>
__device__ __forceinline__ void read_either(const double* memory, const double* arguments, int first, double (&values)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) values[i] = memory ? ((MemoryPointer)memory)[first + i] : arguments[first + i];
}
#endif
