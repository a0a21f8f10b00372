// The intrinsics of x86-64 that arch/cpu.h uses.
//
// <immintrin.h> declares thousands, for which GCC needs a quarter of a second: half of the time of most kernels. So
// these are declared here as in that header, for the versions of GCC whose built-in functions are known to be those.
#pragma once

#if !defined(__GNUC__) || defined(__clang__) || __GNUC__ < 9 || __GNUC__ > 14
#include <immintrin.h>
#else

#define INTRINSIC inline __attribute__((always_inline, artificial))

typedef float __m128 __attribute__((vector_size(16), may_alias));
typedef double __m128d __attribute__((vector_size(16), may_alias));
typedef long long __m128i __attribute__((vector_size(16), may_alias));
typedef int v4si __attribute__((vector_size(16)));
typedef float v4sf __attribute__((vector_size(16)));
typedef double v2df __attribute__((vector_size(16)));
INTRINSIC __m128i _mm_set1_epi64x(long long a) { return __m128i{a, a}; }
INTRINSIC __m128i _mm_mul_epu32(__m128i a, __m128i b) { return (__m128i)__builtin_ia32_pmuludq128((v4si)a, (v4si)b); }

#ifdef __AVX__
typedef float __m256 __attribute__((vector_size(32), may_alias));
typedef double __m256d __attribute__((vector_size(32), may_alias));
typedef long long __m256i __attribute__((vector_size(32), may_alias));
typedef long long __m256i_u __attribute__((vector_size(32), may_alias, aligned(1)));
typedef float v8sf __attribute__((vector_size(32)));
typedef double v4df __attribute__((vector_size(32)));
typedef int v8si __attribute__((vector_size(32)));
typedef long long v4di __attribute__((vector_size(32)));
INTRINSIC int _mm256_testz_si256(__m256i a, __m256i b) { return __builtin_ia32_ptestz256((v4di)a, (v4di)b); }
INTRINSIC __m256 _mm256_sqrt_ps(__m256 a) { return (__m256)__builtin_ia32_sqrtps256((v8sf)a); }
INTRINSIC __m256d _mm256_sqrt_pd(__m256d a) { return (__m256d)__builtin_ia32_sqrtpd256((v4df)a); }
INTRINSIC __m256i _mm256_loadu_si256(const void* at) { return *(const __m256i_u*)at; }
INTRINSIC __m256i _mm256_set1_epi64x(long long a) { return __m256i{a, a, a, a}; }
#endif

#ifdef __AVX2__
INTRINSIC __m256i _mm256_mul_epu32(__m256i a, __m256i b) {
    return (__m256i)__builtin_ia32_pmuludq256((v8si)a, (v8si)b);
}
INTRINSIC __m256 _mm256_permutevar8x32_ps(__m256 a, __m256i order) {
    return (__m256)__builtin_ia32_permvarsf256((v8sf)a, (v8si)order);
}
INTRINSIC __m256i _mm256_permutevar8x32_epi32(__m256i a, __m256i order) {
    return (__m256i)__builtin_ia32_permvarsi256((v8si)a, (v8si)order);
}
#endif

#ifdef __FMA__
INTRINSIC __m128 _mm_fmadd_ps(__m128 a, __m128 b, __m128 c) {
    return (__m128)__builtin_ia32_vfmaddps((v4sf)a, (v4sf)b, (v4sf)c);
}
INTRINSIC __m128 _mm_fnmadd_ps(__m128 a, __m128 b, __m128 c) {
    return (__m128)__builtin_ia32_vfnmaddps((v4sf)a, (v4sf)b, (v4sf)c);
}
INTRINSIC __m128d _mm_fmadd_pd(__m128d a, __m128d b, __m128d c) {
    return (__m128d)__builtin_ia32_vfmaddpd((v2df)a, (v2df)b, (v2df)c);
}
INTRINSIC __m128d _mm_fnmadd_pd(__m128d a, __m128d b, __m128d c) {
    return (__m128d)__builtin_ia32_vfnmaddpd((v2df)a, (v2df)b, (v2df)c);
}
INTRINSIC __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c) {
    return (__m256)__builtin_ia32_vfmaddps256((v8sf)a, (v8sf)b, (v8sf)c);
}
INTRINSIC __m256 _mm256_fnmadd_ps(__m256 a, __m256 b, __m256 c) {
    return (__m256)__builtin_ia32_vfnmaddps256((v8sf)a, (v8sf)b, (v8sf)c);
}
INTRINSIC __m256d _mm256_fmadd_pd(__m256d a, __m256d b, __m256d c) {
    return (__m256d)__builtin_ia32_vfmaddpd256((v4df)a, (v4df)b, (v4df)c);
}
INTRINSIC __m256d _mm256_fnmadd_pd(__m256d a, __m256d b, __m256d c) {
    return (__m256d)__builtin_ia32_vfnmaddpd256((v4df)a, (v4df)b, (v4df)c);
}
#endif

#ifdef __AVX512VL__
INTRINSIC __m256i _mm256_maskz_permutex2var_epi32(unsigned char lanes, __m256i a, __m256i order, __m256i b) {
    return (__m256i)__builtin_ia32_vpermt2vard256_maskz((v8si)order, (v8si)a, (v8si)b, lanes);
}
#endif

#ifdef __AVX512F__
typedef float __m512 __attribute__((vector_size(64), may_alias));
typedef double __m512d __attribute__((vector_size(64), may_alias));
typedef long long __m512i __attribute__((vector_size(64), may_alias));
typedef long long __m512i_u __attribute__((vector_size(64), may_alias, aligned(1)));
typedef float v16sf __attribute__((vector_size(64)));
typedef double v8df __attribute__((vector_size(64)));
typedef int v16si __attribute__((vector_size(64)));
typedef long long v8di __attribute__((vector_size(64)));
constexpr int CURRENT_ROUNDING = 4;
INTRINSIC unsigned char _mm512_test_epi64_mask(__m512i a, __m512i b) {
    return __builtin_ia32_ptestmq512((v8di)a, (v8di)b, (unsigned char)-1);
}
INTRINSIC __m512 _mm512_maskz_sqrt_ps(unsigned short lanes, __m512 a) {
    return (__m512)__builtin_ia32_sqrtps512_mask((v16sf)a, v16sf{}, lanes, CURRENT_ROUNDING);
}
INTRINSIC __m512d _mm512_maskz_sqrt_pd(unsigned char lanes, __m512d a) {
    return (__m512d)__builtin_ia32_sqrtpd512_mask((v8df)a, v8df{}, lanes, CURRENT_ROUNDING);
}
INTRINSIC __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
    return (__m512)__builtin_ia32_vfmaddps512_mask((v16sf)a, (v16sf)b, (v16sf)c, (unsigned short)-1, CURRENT_ROUNDING);
}
INTRINSIC __m512 _mm512_fnmadd_ps(__m512 a, __m512 b, __m512 c) {
    return (__m512)__builtin_ia32_vfnmaddps512_mask((v16sf)a, (v16sf)b, (v16sf)c, (unsigned short)-1, CURRENT_ROUNDING);
}
INTRINSIC __m512d _mm512_fmadd_pd(__m512d a, __m512d b, __m512d c) {
    return (__m512d)__builtin_ia32_vfmaddpd512_mask((v8df)a, (v8df)b, (v8df)c, (unsigned char)-1, CURRENT_ROUNDING);
}
INTRINSIC __m512d _mm512_fnmadd_pd(__m512d a, __m512d b, __m512d c) {
    return (__m512d)__builtin_ia32_vfnmaddpd512_mask((v8df)a, (v8df)b, (v8df)c, (unsigned char)-1, CURRENT_ROUNDING);
}
INTRINSIC __m512i _mm512_loadu_si512(const void* at) { return *(const __m512i_u*)at; }
INTRINSIC __m512i _mm512_set1_epi64(long long a) { return __m512i{a, a, a, a, a, a, a, a}; }
INTRINSIC __m512i _mm512_maskz_mul_epu32(unsigned char lanes, __m512i a, __m512i b) {
    return (__m512i)__builtin_ia32_pmuludq512_mask((v16si)a, (v16si)b, v8di{}, lanes);
}
INTRINSIC __m512 _mm512_maskz_permutexvar_ps(unsigned short lanes, __m512i order, __m512 a) {
    return (__m512)__builtin_ia32_permvarsf512_mask((v16sf)a, (v16si)order, v16sf{}, lanes);
}
INTRINSIC __m512d _mm512_maskz_permutexvar_pd(unsigned char lanes, __m512i order, __m512d a) {
    return (__m512d)__builtin_ia32_permvardf512_mask((v8df)a, (v8di)order, v8df{}, lanes);
}
INTRINSIC __m512i _mm512_maskz_permutexvar_epi32(unsigned short lanes, __m512i order, __m512i a) {
    return (__m512i)__builtin_ia32_permvarsi512_mask((v16si)a, (v16si)order, v16si{}, lanes);
}
#endif

#endif
