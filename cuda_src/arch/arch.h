// The machine, behind one set of names: the folder arch/ is the only one that knows it.
//
// A kernel's body is written for one site. On a GPU a site is a thread and `real` is a number. On a
// CPU a site is a SIMD register of LANES sites, one from each of LANES equal sub-lattices, and
// `real` is a register. Branches are replaced by masks, so that the same source serves both.
//
// Selected by the compiler's command line:
//   REAL_BYTES  4 or 8: single or double precision
//   LANES       sites in a SIMD register (1 on a GPU)
//   LARGE       1 if a field has 2^32 packets or more, so that packet numbers need 64 bits (GPU)
//
// Every machine defines
//   real, scalar           a number of every lane, and one for all lanes
//   mask                   a truth value of every lane
//   word, signed_word      32 bits of every lane
//   wide                   64 bits of every lane; HALVES of them hold one word of every lane
//   packet                 the unit of memory access: one component of every lane (CPU), or 16
//                          bytes of consecutive components (GPU)
//   INLINE, UNCHANGED_CODE, RARE, UNROLL, ROLLED, UNROLL_IF
//                          how functions and loops are compiled
// and the functions below them in cpu.h and gpu.h.
#pragma once

#if REAL_BYTES == 4
typedef float scalar;
#else
typedef double scalar;
#endif

#ifdef __CUDACC__
#include "arch/gpu.h"
#else
#include "arch/cpu.h"
#endif

INLINE real square(real x) { return x * x; }

// A number that is added where staples may cancel, so that dividing by their norm is safe. It is far
// below the rounding error of any staple, and its square does not underflow to zero.
constexpr scalar NEVER_ZERO = scalar(REAL_BYTES == 4 ? 1e-18 : 1e-150);
