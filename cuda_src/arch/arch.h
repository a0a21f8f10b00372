// One set of names for all machines. Only the folder arch/ contains code that depends on the machine.
//
// A kernel's body is written for one site. On a GPU a site is a thread and `real` is a number. On a
// CPU a "site" is a SIMD register of LANES sites, one from each of LANES equal sub-lattices, and
// `real` is a register. Masks replace branches, so that the same source works on both.
//
// Selected by the compiler's command line:
//   REAL_BYTES  4 or 8: single or double precision
//   LANES       sites in a SIMD register (1 on a GPU)
//   LARGE       1 if a field has 2^32 or more packets, so that packet numbers need 64 bits (GPU)
//   STRICT      1 if all machines must compute the same bits. The compiler then fuses no multiplication with an addition
//               by itself, and divisions and roots are those of IEEE 754; what is fused, is fused everywhere
//
// Every machine defines
//   real, scalar           a number per lane, and one number for all lanes
//   mask                   a truth value per lane
//   word, signed_word      32 bits per lane
//   wide                   64 bits per lane; HALVES values of this type hold one word per lane
//   packet                 the unit of memory access: one component for all lanes (CPU), or 16
//                          bytes of consecutive components (GPU)
//   INLINE, UNCHANGED_CODE, RARE, LONG_CODE, UNROLL, ROLLED, ROLLED_IF, UNROLL_IF, UNROLL_ON_GPU_IF
//                          controls for the compilation of functions and loops
// and the functions that follow these definitions in cpu.h and gpu.h.
#pragma once

#include <cstring>

#if REAL_BYTES == 4
typedef float scalar;
#else
typedef double scalar;
#endif

#ifndef STRICT
#define STRICT 0
#endif

#if defined(__CUDACC__) || defined(__HIP__)
#include "arch/gpu.h"
#else
#include "arch/cpu.h"
#endif

INLINE real square(real x) { return x * x; }

#ifndef OWN_READS_OF_MEMORY
// Return what is at a place in memory, if the choice between it and an argument of the kernel depends on the launch.
template <class T> INLINE const T& in_memory(const T* at) { return *at; }
// Read numbers from a place in memory, or, if there is none, from the arguments of the kernel.
template <int N> INLINE void read_either(const double* memory, const double* arguments, int first, double (&values)[N]) {
    const double* const from = (memory ? memory : arguments) + first;
    UNROLL for (int i = 0; i < N; i++) values[i] = from[i];
}
#endif

// c + a b and c - a b with one rounding. Unless STRICT, the compiler decides where to fuse.
INLINE real fused(real a, real b, real c) {
#if STRICT
    return fused_exactly(a, b, c);
#else
    return a * b + c;
#endif
}
INLINE real fused_minus(real a, real b, real c) {
#if STRICT
    return fused_minus_exactly(a, b, c);
#else
    return c - a * b;
#endif
}

#if REAL_BYTES == 4
INLINE real real_from_31_bits(word n, scalar scale, scalar shift) {
    return fused(to_real((real_bits)n), broadcast(scale), broadcast(shift));
}
#endif

// Raise a word of memory to the bits of the largest lane of x, in single precision, unless it is larger already. The
// bits of floats that are not negative are in the order of the floats.
INLINE void raise_largest(unsigned* at, real x) {
    const float most = (float)lane_max(larger(x, broadcast(0)));
    unsigned bits;
    memcpy(&bits, &most, sizeof bits);
    if (bits > *(const volatile unsigned*)at) max_atomically(at, bits);  // most values are smaller
}

// Whether lanes whose iteration has converged keep what they have while others go on, so that results do not depend on
// which sites share a register.
constexpr bool KEEPS_CONVERGED = STRICT && LANES > 1;

// Return the lanes whose iteration goes on, of those in which it did, given those that have not converged now.
INLINE mask still(mask going, mask moving) { return KEEPS_CONVERGED ? going & moving : moving; }

// Return u in these lanes, and v in the others.
template <class T> INLINE T select_lanes(mask lanes, const T& u, const T& v) {
    T chosen = v;
    real* to = (real*)&chosen;
    const real* from = (const real*)&u;
    UNROLL for (unsigned i = 0; i < sizeof(T) / sizeof(real); i++) to[i] = select(lanes, from[i], to[i]);
    return chosen;
}

// A number to be added to a sum of staples, so that it can be divided by its norm even if the staples
// cancel. It is far below the rounding error of any staple, about 1e-7 or 1e-16, and its square, 1e-36 or
// 1e-300, is above the smallest normal number, 1.2e-38 or 2.2e-308.
constexpr scalar NEVER_ZERO = scalar(REAL_BYTES == 4 ? 1e-18 : 1e-150);
