// The GPU: a thread is a site, a mask is a bool.
#pragma once

#define INLINE __device__ __forceinline__
#define ONCE __device__ __noinline__  // the same rounding wherever it is called
#define RARE INLINE  // a call would spill registers
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")

typedef scalar real;
typedef bool mask;
typedef unsigned int word;            // 32 random bits
typedef int signed_word;
typedef unsigned long long wide;      // a word in the low half of 64 bits
#define HALVES 1                      // wides that hold one word of every lane

INLINE real broadcast(scalar x) { return x; }
INLINE real select(mask m, real a, real b) { return m ? a : b; }
INLINE word select_word(mask m, word a, word b) { return m ? a : b; }
INLINE mask everywhere(bool value) { return value; }
INLINE bool some_lane(mask m) { return m; }
INLINE real root(real x) { return sqrt(x); }
INLINE real inverse_root(real x) { return rsqrt(x); }
INLINE real smaller(real a, real b) { return a < b ? a : b; }
INLINE real larger(real a, real b) { return a > b ? a : b; }

INLINE wide product32(wide a, unsigned int b) { return (wide)(unsigned int)a * b; }
INLINE void spread(word w, wide (&half)[HALVES]) { half[0] = w; }
INLINE word gather(const wide (&half)[HALVES]) { return (word)half[0]; }

#if REAL_BYTES == 4
typedef int real_bits;
INLINE real real_from_31_bits(word n, scalar scale, scalar shift) { return fmaf((float)(int)n, scale, shift); }
INLINE real_bits bits_of(real x) { return __float_as_int(x); }
INLINE real from_bits(real_bits x) { return __int_as_float(x); }
INLINE real to_real(real_bits x) { return (float)x; }
#else
typedef long long real_bits;
INLINE real_bits bits_of(real x) { return __double_as_longlong(x); }
INLINE real from_bits(real_bits x) { return __longlong_as_double(x); }
#endif

template <class F> INLINE real lanewise(real x, F f) { return f(x); }
INLINE double lane_sum(real x) { return (double)x; }

// Counts a thread's arrival, after all that its block wrote before __syncthreads(); who sees it sees
// that, too. __threadfence() would order more, and take longer.
INLINE void arrive(unsigned* arrived) {
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
#else
    atomicAdd(arrived, 1);
#endif
}
INLINE unsigned arrivals(const unsigned* arrived) {
#ifdef __CUDA_ARCH__
    unsigned seen;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
    return seen;
#else
    return *(volatile const unsigned*)arrived;
#endif
}

// Sixteen bytes, the widest load of a thread.
#if REAL_BYTES == 4
typedef float4 chunk;
#else
typedef double2 chunk;
#endif
constexpr int CHUNK = 16 / REAL_BYTES;
