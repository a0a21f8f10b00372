// One kernel source, two machines. A kernel body is written for one site; what "one site" is on
// this machine, a GPU thread or the lanes of a CPU register, is decided here and nowhere else.
//
// Set by the compiler's command line:
//   REAL_BYTES  4 or 8: single or double precision
//   GROUP       SU2 or SU3
//   RANDOM      Philox, Lcg, Ranlux (kernels that draw random numbers)
//   LUXURY_PERIOD  p of RANLUX
//   LANES       sites in a CPU register (CPU only)
//   LARGE       1 where a field has 2^32 pieces of 16 bytes or more (GPU only)
#pragma once

#if REAL_BYTES == 4
typedef float scalar;
#else
typedef double scalar;
#endif

#ifdef __CUDACC__
#include "machine_gpu.h"
#else
#include "machine_cpu.h"
#endif

INLINE real square(real x) { return x * x; }
