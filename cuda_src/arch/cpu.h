// The CPU: a "site" is a SIMD register of LANES sites, and a mask is a register of 0 and -1.
#pragma once

// Every kernel is compiled on its own, and most are small: <cmath> would take a sixth of their time.
#include <cstdint>
#include <cstring>
#if LANES > 1 && defined(__SSE2__)
#include "arch/x86.h"
#endif

#ifdef __NO_INLINE__  // -fno-inline: a kernel that runs for a moment is then compiled in a third of the time
#define INLINE inline
#else
#define INLINE inline __attribute__((always_inline))
#endif
#define UNCHANGED_CODE inline __attribute__((noinline))  // same rounding at every call
#define RARE __attribute__((noinline))  // keeps rare code out of the main path
#define LONG_CODE __attribute__((noinline))  // called wherever it is used, so that it is compiled once
#define UNROLL _Pragma("GCC unroll 128")
#define ROLLED _Pragma("GCC unroll 1")
#define PRAGMA_OF(text) _Pragma(#text)
#define ROLLED_IF(condition) PRAGMA_OF(GCC unroll((condition) ? 1 : 128))
#define UNROLL_IF(condition) UNROLL
#define UNROLL_ON_GPU_IF(condition) ROLLED

#define REGISTER_BYTES (LANES * REAL_BYTES)

// In single precision a register holds twice as many reals as 64-bit products. Products of the even
// lanes are then computed in one `wide`, and those of the odd lanes in another.
#if REAL_BYTES == 4 && LANES > 1
#define HALVES 2
#else
#define HALVES 1
#endif
#define WIDE_BYTES (LANES / HALVES * 8)

#if REAL_BYTES == 4
typedef int32_t lane_integer;
#else
typedef int64_t lane_integer;
#endif
typedef scalar real __attribute__((vector_size(REGISTER_BYTES)));
typedef lane_integer mask __attribute__((vector_size(REGISTER_BYTES)));
typedef mask real_bits;
typedef uint32_t word __attribute__((vector_size(LANES * 4)));
typedef int32_t signed_word __attribute__((vector_size(LANES * 4)));
typedef uint64_t wide __attribute__((vector_size(WIDE_BYTES)));

#if LANES > 1 && defined(__aarch64__)
#include "arch/arm.h"
#endif
#ifndef PREFETCHED
#define PREFETCHED 1  // registers by a prefetch
#endif

// The masked intrinsics compile to the plain instructions. The headers of the plain intrinsics cause
// warnings by GCC (bug 105593).
#define ALL_LANES (-1)

INLINE real broadcast(scalar x) { return real{} + x; }
INLINE real select(mask m, real a, real b) { return m ? a : b; }
INLINE mask everywhere(bool value) { return mask{} - (lane_integer)value; }

INLINE word select_word(mask m, word a, word b) {
    word bits = __builtin_convertvector(m, word);
    return (a & bits) | (b & ~bits);
}

template <class V> INLINE bool any_lane(V m) {
#if defined(__AVX512F__) && LANES > 1
    if constexpr (sizeof(V) == 64) return _mm512_test_epi64_mask((__m512i)m, (__m512i)m) != 0;
#endif
#if defined(__AVX__) && LANES > 1
    if constexpr (sizeof(V) == 32) return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#endif
#ifdef SVE
    if constexpr (sizeof(V) == sizeof(mask)) return sve_any((mask)m);
#endif
    bool found = false;
    for (unsigned lane = 0; lane < sizeof(V) / sizeof(m[0]); lane++) found |= m[lane] != 0;
    return found;
}

// Functions of one number.
#if REAL_BYTES == 4
INLINE scalar root(scalar x) { return __builtin_sqrtf(x); }
INLINE scalar exponential(scalar x) { return __builtin_expf(x); }
INLINE scalar arctangent(scalar x) { return __builtin_atanf(x); }
#else
INLINE scalar root(scalar x) { return __builtin_sqrt(x); }
INLINE scalar exponential(scalar x) { return __builtin_exp(x); }
INLINE scalar arctangent(scalar x) { return __builtin_atan(x); }
#endif

INLINE real root(real x) {
#if defined(__AVX512F__) && REGISTER_BYTES == 64 && REAL_BYTES == 4
    return (real)_mm512_maskz_sqrt_ps(ALL_LANES, (__m512)x);
#elif defined(__AVX512F__) && REGISTER_BYTES == 64
    return (real)_mm512_maskz_sqrt_pd(ALL_LANES, (__m512d)x);
#elif defined(__AVX__) && REGISTER_BYTES == 32 && REAL_BYTES == 4
    return (real)_mm256_sqrt_ps((__m256)x);
#elif defined(__AVX__) && REGISTER_BYTES == 32
    return (real)_mm256_sqrt_pd((__m256d)x);
#else
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = root(x[lane]);
    return y;
#endif
}

INLINE real inverse_root(real x) { return scalar(1) / root(x); }

// c + a b and c - a b with one rounding. Without an instruction for it, the C library computes them.
#if STRICT
INLINE scalar fused_exactly(scalar a, scalar b, scalar c) {
    return REAL_BYTES == 4 ? (scalar)__builtin_fmaf((float)a, (float)b, (float)c) : (scalar)__builtin_fma(a, b, c);
}
#if defined(__FMA__) && LANES > 1 && REGISTER_BYTES >= 16
#if REAL_BYTES == 4
#define OF_THIS_SIZE(PREFIX) PREFIX##_ps
#else
#define OF_THIS_SIZE(PREFIX) PREFIX##_pd
#endif
INLINE real fused_exactly(real a, real b, real c) {
#if defined(__AVX512F__) && REGISTER_BYTES == 64
    return OF_THIS_SIZE(_mm512_fmadd)(a, b, c);
#elif REGISTER_BYTES == 32
    return OF_THIS_SIZE(_mm256_fmadd)(a, b, c);
#else
    return OF_THIS_SIZE(_mm_fmadd)(a, b, c);
#endif
}
INLINE real fused_minus_exactly(real a, real b, real c) {
#if defined(__AVX512F__) && REGISTER_BYTES == 64
    return OF_THIS_SIZE(_mm512_fnmadd)(a, b, c);
#elif REGISTER_BYTES == 32
    return OF_THIS_SIZE(_mm256_fnmadd)(a, b, c);
#else
    return OF_THIS_SIZE(_mm_fnmadd)(a, b, c);
#endif
}
#else
INLINE real fused_exactly(real a, real b, real c) {
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = fused_exactly(a[lane], b[lane], c[lane]);
    return y;
}
INLINE real fused_minus_exactly(real a, real b, real c) { return fused_exactly(-a, b, c); }
#endif
#endif
INLINE real smaller(real a, real b) { return a < b ? a : b; }
INLINE real larger(real a, real b) { return a > b ? a : b; }
INLINE real magnitude(real x) { return larger(x, -x); }
INLINE real larger_or_nan(real a, real b) { return a >= b ? a : ((b != b) | (a == a)) ? b : a; }

// Multiply the low 32 bits of every element by b, with a 64-bit result.
INLINE wide product32(wide a, uint32_t b) {
#if defined(__AVX512F__) && WIDE_BYTES == 64
    return (wide)_mm512_maskz_mul_epu32(ALL_LANES, (__m512i)a, _mm512_set1_epi64((long long)b));
#elif defined(__AVX2__) && WIDE_BYTES == 32
    return (wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)b));
#elif defined(__SSE2__) && WIDE_BYTES == 16
    return (wide)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((long long)b));
#elif defined(__aarch64__) && WIDE_BYTES == 16
    return neon_product32(a, b);
#else
    return (a & (wide{} + 0xffffffffu)) * (uint64_t)b;
#endif
}

// Convert words to `wide` and back. The high 32 bits of each element of a `wide` are arbitrary.
INLINE void spread(word w, wide (&half)[HALVES]) {
#if HALVES == 2
    half[0] = (wide)w;
    half[1] = half[0] >> 32;
#else
    half[0] = __builtin_convertvector(w, wide);
#endif
}

INLINE word gather(const wide (&half)[HALVES]) {
#if HALVES == 2
    return (word)((half[0] & (wide{} + 0xffffffffu)) | (half[1] << 32));
#else
    return __builtin_convertvector(half[0] & (wide{} + 0xffffffffu), word);
#endif
}

INLINE real_bits bits_of(real x) { return (real_bits)x; }
INLINE real from_bits(real_bits x) { return (real)x; }
#if REAL_BYTES == 4
INLINE real to_real(real_bits x) { return __builtin_convertvector(x, real); }
#endif

template <class F> INLINE real lanewise(real x, F f) {
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = f(x[lane]);
    return y;
}

// Sum over the lanes in double precision, as a binary tree with a fixed order; of(value) is what a lane adds.
template <class F> INLINE double lane_sum(real x, F of) {
    double part[LANES];
    for (int lane = 0; lane < LANES; lane++) part[lane] = of((double)x[lane]);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; lane++) part[lane] += part[lane + width];
    return part[0];
}

// The largest element.
INLINE scalar lane_max(real x) {
    scalar most = x[0];
    for (int lane = 1; lane < LANES; lane++) most = x[lane] > most ? x[lane] : most;
    return most;
}

// Return y with y[lane] = x[order[lane]].
INLINE real permute(real x, const lane_integer* order) {
#if defined(__AVX512F__) && REGISTER_BYTES == 64 && REAL_BYTES == 4
    return (real)_mm512_maskz_permutexvar_ps(ALL_LANES, _mm512_loadu_si512(order), (__m512)x);
#elif defined(__AVX512F__) && REGISTER_BYTES == 64
    return (real)_mm512_maskz_permutexvar_pd(ALL_LANES, _mm512_loadu_si512(order), (__m512d)x);
#elif defined(__AVX2__) && REGISTER_BYTES == 32 && REAL_BYTES == 4
    return (real)_mm256_permutevar8x32_ps((__m256)x, _mm256_loadu_si256((const __m256i*)order));
#elif defined(SVE)
    mask all;
    memcpy(&all, order, sizeof all);
    return sve_permute(x, all);
#else
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = x[order[lane]];
    return y;
#endif
}


// The processor has no logarithm that is faster than the polynomial of maths.h.
constexpr bool HAS_FAST_LOG = false;
INLINE real fast_log(real x) { return x; }

// Set an element whose index is a loop counter.
template <int K> INLINE void set_element(real (&values)[K], int k, real value) { values[k] = value; }

INLINE void keep_in_register(word&) {}
INLINE void compute_again(int&) {}

// Addresses cost little on a CPU, so separate code for each direction does not pay.
constexpr bool ADDRESSES_ARE_COSTLY = false;

// Memory layout. The components of a link, and the words of a state, are contiguous: a field is
// [...][slot][component], with one packet per component.
typedef real packet;
typedef unsigned long long packet_index;
constexpr int COMPONENTS_PER_PACKET = 1;
constexpr bool SLOT_BY_SLOT = true;  // the packets of a slot are contiguous
template <int W> constexpr int WORDS_PER_PACKET = 1;

template <int C> INLINE void load_packets(const packet* data, packet_index first, packet_index, real (&c)[C]) {
    UNROLL for (int i = 0; i < C; i++) c[i] = data[first + i];
    // The next slot reads the next link. Prefetching doubles the bandwidth of fields that exceed the cache.
    UNROLL for (int i = 0; i < C; i += PREFETCHED) __builtin_prefetch(&data[first + C + i]);
}
template <bool STREAMED, int C>
INLINE void store_packets(packet* data, packet_index first, packet_index, const real (&c)[C]) {
    UNROLL for (int i = 0; i < C; i++) data[first + i] = c[i];
}
template <int W> INLINE void load_words(const unsigned* data, packet_index first, packet_index, word (&w)[W]) {
    const word* all = (const word*)data;
    UNROLL for (int i = 0; i < W; i++) w[i] = all[first + i];
    UNROLL for (int i = 0; i < W; i += PREFETCHED) __builtin_prefetch(&all[first + W + i]);
}
template <int W> INLINE void store_words(unsigned* data, packet_index first, packet_index, const word (&w)[W]) {
    word* all = (word*)data;
    UNROLL for (int i = 0; i < W; i++) all[first + i] = w[i];
}

// Numbers of any type: a block has C of them for every slot and lane: [slot][number][lane].
typedef int16_t fixed16;
template <class T> struct LanesOf;
template <> struct LanesOf<float> { typedef float type __attribute__((vector_size(LANES * 4))); };
template <> struct LanesOf<double> { typedef double type __attribute__((vector_size(LANES * 8))); };
template <> struct LanesOf<fixed16> { typedef fixed16 type __attribute__((vector_size(LANES * 2))); };

// With ONCE the next slot reads the numbers that follow in memory.
template <class T, bool ONCE, int C> INLINE void load_numbers(const void* block, unsigned, unsigned slot, real (&c)[C]) {
    typedef typename LanesOf<T>::type Stored;
    const Stored* const data = (const Stored*)block + (size_t)slot * C;
    UNROLL for (int i = 0; i < C; i++) {
#ifdef SVE
        if constexpr (sizeof(T) < REAL_BYTES) c[i] = sve_reals((const T*)(data + i));
        else
#endif
        if constexpr (sizeof(T) == 2) c[i] = __builtin_convertvector(__builtin_convertvector(data[i], signed_word), real);
        else c[i] = __builtin_convertvector(data[i], real);
    }
    if constexpr (ONCE) {
        UNROLL for (int i = 0; i < C; i += PREFETCHED) __builtin_prefetch(&data[C + i]);
    }
}
// Numbers of 16 bits are rounded to the nearest: the last bit of a sum with 1.5 * 2^23 or 1.5 * 2^52 counts ones.
template <class T, int C> INLINE void store_numbers(void* block, unsigned, unsigned slot, const real (&c)[C]) {
    typedef typename LanesOf<T>::type Stored;
    Stored* const data = (Stored*)block + (size_t)slot * C;
    const scalar large = scalar(REAL_BYTES == 4 ? 12582912.0 : 6755399441055744.0);
    UNROLL for (int i = 0; i < C; i++) {
#ifdef SVE
        if constexpr (sizeof(T) == 2) sve_store((T*)(data + i), (c[i] + large) - large);
        else if constexpr (sizeof(T) < REAL_BYTES) sve_store((T*)(data + i), c[i]);
        else
#endif
        if constexpr (sizeof(T) == 2)
            data[i] = __builtin_convertvector(__builtin_convertvector((c[i] + large) - large, signed_word), Stored);
        else data[i] = __builtin_convertvector(c[i], Stored);
    }
}

// K of the C numbers of a slot, from number `first` on.
template <class T, int C, int K>
INLINE void load_part(const void* block, unsigned, unsigned slot, int first, real (&c)[K]) {
    load_numbers<T, false>((const typename LanesOf<T>::type*)block + ((size_t)slot * C + first), 0, 0, c);
}
template <class T, int C, int K>
INLINE void store_part(void* block, unsigned, unsigned slot, int first, const real (&c)[K]) {
    store_numbers<T>((typename LanesOf<T>::type*)block + ((size_t)slot * C + first), 0, 0, c);
}

// Load the numbers at other places, slot * lanes + lane, of a block that may have another number of lanes.
template <class T, int C>
INLINE void load_numbers_at(const void* block, unsigned, const unsigned (&place)[LANES], unsigned lanes, real (&c)[C]) {
    for (int lane = 0; lane < LANES; lane++) {
        const T* const data = (const T*)block + (size_t)(place[lane] / lanes * C) * lanes + place[lane] % lanes;
        for (int i = 0; i < C; i++) c[i][lane] = (scalar)data[(size_t)i * lanes];
    }
}

// Return the numbers of the sites of a slot, given the number in the first lane's sub-lattice.
INLINE word lane_numbers(unsigned first, const unsigned* lane_site) {
    word number;
    memcpy(&number, lane_site, sizeof number);
    return number + first;
}

// Permute the lanes of every component of x, with row `number` of the table `orders`.
template <class T> INLINE void permute_lanes(T& x, const void* orders, int number) {
    const lane_integer* order = (const lane_integer*)orders + number * LANES;
    real* component = (real*)&x;
    UNROLL for (unsigned i = 0; i < sizeof(T) / sizeof(real); i++) component[i] = permute(component[i], order);
}

// Double precision, whatever `real` is, and the bits of both types.
typedef double double_real __attribute__((vector_size(LANES * 8)));
typedef uint64_t double_word __attribute__((vector_size(LANES * 8)));
typedef float float_real __attribute__((vector_size(LANES * 4)));

INLINE double_real select_double(mask m, const double_real& a, const double_real& b) {
    typedef int64_t wide_mask __attribute__((vector_size(LANES * 8)));
    return __builtin_convertvector(m, wide_mask) ? a : b;
}
// 2^n with the integer n nearest to x, for |x| < 1022: the last bits of x + 1.5 * 2^52 are those of n.
INLINE double_real power_of_two(const double_real& x) {
    return (double_real)(((double_word)(x + 6755399441055744.0) + 1023) << 52);
}
// x, or `other` where |x| is not at most `most`.
INLINE double_real where_below(const double_real& x, double most, double other) {
    const auto below = (x <= double_real{} + most) & (x >= double_real{} - most);
    return below ? x : double_real{} + other;
}
INLINE double_real to_double(real x) { return __builtin_convertvector(x, double_real); }
INLINE real from_double(const double_real& x) { return __builtin_convertvector(x, real); }
INLINE word float_bits(const double_real& x) { return (word)__builtin_convertvector(x, float_real); }
INLINE double_real double_of_float(word w) { return __builtin_convertvector((float_real)w, double_real); }
INLINE void double_bits(const double_real& x, word& low, word& high) {
    low = __builtin_convertvector((double_word)x, word);
    high = __builtin_convertvector((double_word)x >> 32, word);
}
INLINE double_real double_of_bits(word low, word high) {
    return (double_real)(__builtin_convertvector(low, double_word) | __builtin_convertvector(high, double_word) << 32);
}

INLINE word swap_bytes(word w) { return w >> 24 | (w >> 8 & 0xff00u) | (w << 8 & 0xff0000u) | w << 24; }

// Copy the first `count` words from and to a place of memory for every lane.
template <int K>
INLINE void load_lane_words(const unsigned* data, const unsigned long long (&at)[LANES], int count, word (&w)[K]) {
    unsigned* const tile = (unsigned*)w;
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < count; i++) tile[i * LANES + lane] = data[at[lane] + i];
}
template <int K>
INLINE void store_lane_words(unsigned* data, const unsigned long long (&at)[LANES], int count, const word (&w)[K]) {
    const unsigned* const tile = (const unsigned*)w;
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < count; i++) data[at[lane] + i] = tile[i * LANES + lane];
}

INLINE void set_lane(word& w, int lane, unsigned value) { w[lane] = value; }
template <class F> INLINE mask lanes_where(word w, F f) {
    mask m = {};
    for (int lane = 0; lane < LANES; lane++) m[lane] = -(lane_integer)(bool)f(w[lane]);
    return m;
}
INLINE scalar lane_of(real x, int lane) { return x[lane]; }
INLINE unsigned lane_of(word w, int lane) { return w[lane]; }
INLINE unsigned lane_add(word w) {
    unsigned sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += w[lane];
    return sum;
}
INLINE unsigned lane_xor(word w) {
    unsigned sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum ^= w[lane];
    return sum;
}

// Look up the lowest LOOKUP_BITS bits of every lane in a table that fits into a register. With LOOKUP_BITS = 0 the
// processor cannot do so.
#if defined(__AVX512F__) && LANES == 16
constexpr int LOOKUP_BITS = 4;
INLINE word lookup(const unsigned* table, word index) {
    return (word)_mm512_maskz_permutexvar_epi32(ALL_LANES, (__m512i)index, _mm512_loadu_si512(table));
}
#elif defined(__AVX512VL__) && LANES == 8
constexpr int LOOKUP_BITS = 4;
INLINE word lookup(const unsigned* table, word index) {
    const __m256i low = _mm256_loadu_si256((const __m256i*)table), high = _mm256_loadu_si256((const __m256i*)table + 1);
    return (word)_mm256_maskz_permutex2var_epi32(ALL_LANES, low, (__m256i)index, high);
}
#elif defined(__AVX2__) && LANES == 8
constexpr int LOOKUP_BITS = 3;
INLINE word lookup(const unsigned* table, word index) {
    return (word)_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i*)table), (__m256i)index);
}
#else
constexpr int LOOKUP_BITS = 0;
INLINE word lookup(const unsigned*, word index) { return index; }
#endif

// Change a word of memory that several threads change.
INLINE void add_atomically(unsigned* at, unsigned n) { __atomic_fetch_add(at, n, __ATOMIC_RELAXED); }
INLINE void xor_atomically(unsigned* at, unsigned n) { __atomic_fetch_xor(at, n, __ATOMIC_RELAXED); }
INLINE void max_atomically(unsigned* at, unsigned n) {
    unsigned seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (seen < n && !__atomic_compare_exchange_n(at, &seen, n, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
