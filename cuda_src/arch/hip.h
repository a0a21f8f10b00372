// What AMD GPUs have under other names than NVIDIA's, or not at all. Everything else in gpu.h is the same for both.
#pragma once

#include <hip/hip_runtime.h>

#define VECTOR_REGISTER "v"  // the constraint of assembly code for a register of a thread

// Loads and stores that the caches need not keep.
template <class P> __device__ __forceinline__ P __ldcs(const P* at) { return *at; }
template <class P> __device__ __forceinline__ void __stcs(P* at, const P& value) { *at = value; }

// Arguments of kernels are constants anyway.
#define __grid_constant__

#define OWN_READ_EITHER
template <int N>
__device__ __forceinline__ void read_either(const double* memory, const double* arguments, int first, double (&values)[N]) {
    const auto* const from = (const __attribute__((address_space(1))) double*)memory + first;
#pragma unroll
    for (int i = 0; i < N; i++) values[i] = memory ? from[i] : arguments[first + i];
}
