// The CPU: a SIMD register of LANES sites is a "site", a mask is a register of 0 and -1.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>
#if defined(__AVX__) || defined(__SSE2__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))
#define ONCE inline __attribute__((noinline))  // the same rounding wherever it is called
#define RARE __attribute__((noinline))  // kept out of the way of what is not rare
#define UNROLL _Pragma("GCC unroll 128")
#define ROLLED _Pragma("GCC unroll 1")

#define REGISTER_BYTES (LANES * REAL_BYTES)

// Wides that hold one word of every lane: with single precision a register holds twice as many
// sites as 64-bit products, so the even lanes make up one half and the odd lanes the other.
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

INLINE real broadcast(scalar x) { return real{} + x; }
INLINE real select(mask m, real a, real b) { return m ? a : b; }
INLINE mask everywhere(bool value) { return mask{} - (lane_integer)value; }

INLINE word select_word(mask m, word a, word b) {
    word bits = __builtin_convertvector(m, word);
    return (a & bits) | (b & ~bits);
}

template <class V> INLINE bool some_lane(V m) {
#ifdef __AVX512F__
    if constexpr (sizeof(V) == 64) return _mm512_test_epi64_mask((__m512i)m, (__m512i)m) != 0;
#endif
#ifdef __AVX__
    if constexpr (sizeof(V) == 32) return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#endif
    bool found = false;
    for (unsigned lane = 0; lane < sizeof(V) / sizeof(m[0]); lane++) found |= m[lane] != 0;
    return found;
}

INLINE real root(real x) {
#if defined(__AVX512F__) && REGISTER_BYTES == 64 && REAL_BYTES == 4
    return (real)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX512F__) && REGISTER_BYTES == 64
    return (real)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX__) && REGISTER_BYTES == 32 && REAL_BYTES == 4
    return (real)_mm256_sqrt_ps((__m256)x);
#elif defined(__AVX__) && REGISTER_BYTES == 32
    return (real)_mm256_sqrt_pd((__m256d)x);
#else
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = std::sqrt(x[lane]);
    return y;
#endif
}

INLINE real inverse_root(real x) { return scalar(1) / root(x); }
INLINE real smaller(real a, real b) { return a < b ? a : b; }
INLINE real larger(real a, real b) { return a > b ? a : b; }

// The 64-bit product of the low 32 bits of every element with b.
INLINE wide product32(wide a, uint32_t b) {
#if defined(__AVX512F__) && WIDE_BYTES == 64
    return (wide)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#elif defined(__AVX2__) && WIDE_BYTES == 32
    return (wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)b));
#elif defined(__SSE2__) && WIDE_BYTES == 16
    return (wide)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((long long)b));
#else
    return (a & (wide{} + 0xffffffffu)) * (uint64_t)b;
#endif
}

// A word of every lane as wides and back; what is above the low 32 bits of a wide is arbitrary.
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
INLINE real real_from_31_bits(word n, scalar scale, scalar shift) {
    return __builtin_convertvector((real_bits)n, real) * scale + shift;
}
INLINE real to_real(real_bits x) { return __builtin_convertvector(x, real); }
#endif

template <class F> INLINE real lanewise(real x, F f) {
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = f(x[lane]);
    return y;
}

// The sum over lanes in a fixed tree, in double precision.
INLINE double lane_sum(real x) {
    double part[LANES];
    for (int lane = 0; lane < LANES; lane++) part[lane] = (double)x[lane];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; lane++) part[lane] += part[lane + width];
    return part[0];
}

// y[lane] = x[order[lane]]
INLINE real permute(real x, const lane_integer* order) {
#if defined(__AVX512F__) && REGISTER_BYTES == 64 && REAL_BYTES == 4
    return (real)_mm512_permutexvar_ps(_mm512_loadu_si512(order), (__m512)x);
#elif defined(__AVX512F__) && REGISTER_BYTES == 64
    return (real)_mm512_permutexvar_pd(_mm512_loadu_si512(order), (__m512d)x);
#elif defined(__AVX2__) && REGISTER_BYTES == 32 && REAL_BYTES == 4
    return (real)_mm256_permutevar8x32_ps((__m256)x, _mm256_loadu_si256((const __m256i*)order));
#else
    real y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = x[order[lane]];
    return y;
#endif
}

// Threads that work through a list of steps together: no step begins before the last one ended.
class Barrier {
    const int size;
    std::atomic<int> waiting{0};
    std::atomic<unsigned> round{0};

public:
    explicit Barrier(int size) : size(size) {}
    void wait() {
        const unsigned mine = round.load();
        if (waiting.fetch_add(1) + 1 == size) {
            waiting.store(0);
            round.store(mine + 1);
            return;
        }
        for (int spins = 0; round.load() == mine; spins++)
            if (spins > 4096) std::this_thread::yield();
    }
};

// Calls work(step, begin, end) until all items of every step are done. A thread takes its own share of the items in
// chunks, then what is left of the others', so that one that is held up holds up no other.
template <class Count, class Work> void run_threads(int threads, int steps, Count count, Work work) {
    struct alignas(64) Share {
        std::atomic<long long> next;
    };
    std::vector<Share> shares((size_t)threads * steps);
    Barrier barrier(threads);
    auto run = [&](int me) {
        for (int step = 0; step < steps; step++) {
            const long long items = count(step), chunk = items / (16 * threads) + 1;
            for (int k = 0; k < threads; k++) {
                const int whose = (me + k) % threads;
                const long long first = items * whose / threads, end = items * (whose + 1) / threads;
                auto& next = shares[(size_t)step * threads + whose].next;
                for (long long n; (n = first + next.fetch_add(chunk)) < end;)
                    work(step, n, n + chunk < end ? n + chunk : end);
            }
            barrier.wait();
        }
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; thread++) others.emplace_back(run, thread);
    run(0);
    for (auto& other : others) other.join();
}
