// The GPU: a site is a thread, and a mask is a bool.
#pragma once

#ifdef __HIP__
#include "arch/hip.h"
#else
#define VECTOR_REGISTER "r"  // the constraint of assembly code for a register of a thread
#endif

#define INLINE __device__ __forceinline__
#define UNCHANGED_CODE __device__ __noinline__  // same rounding at every call
#define RARE INLINE  // a call would spill registers
#define LONG_CODE INLINE  // arguments of calls would not be in registers
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
// Short loops stay in the instruction cache, so unrolling does not always pay.
#define PRAGMA_OF(text) _Pragma(#text)
#define UNROLL_IF(condition) PRAGMA_OF(unroll((condition) ? 64 : 1))
#define ROLLED_IF(condition) UNROLL_IF(!(condition))
// Arrays are in registers only if loops over their elements are unrolled.
#define UNROLL_ON_GPU_IF(condition) UNROLL_IF(condition)

typedef scalar real;
typedef bool mask;
typedef unsigned int word;
typedef int signed_word;
typedef unsigned long long wide;
#define HALVES 1

INLINE real broadcast(scalar x) { return x; }
INLINE real select(mask m, real a, real b) { return m ? a : b; }
INLINE word select_word(mask m, word a, word b) { return m ? a : b; }
INLINE mask everywhere(bool value) { return value; }
INLINE bool any_lane(mask m) { return m; }
INLINE real root(real x) { return sqrt(x); }
INLINE real exponential(real x) { return exp(x); }
INLINE real arctangent(real x) { return atan(x); }
#if STRICT
INLINE real inverse_root(real x) { return scalar(1) / root(x); }
INLINE real fused_exactly(real a, real b, real c) { return fma(a, b, c); }
INLINE real fused_minus_exactly(real a, real b, real c) { return fma(-a, b, c); }
#else
INLINE real inverse_root(real x) { return rsqrt(x); }
#endif
INLINE real smaller(real a, real b) { return a < b ? a : b; }
INLINE real larger(real a, real b) { return a > b ? a : b; }
INLINE real magnitude(real x) { return fabs(x); }
INLINE real larger_or_nan(real a, real b) {
#if REAL_BYTES == 4 && __CUDA_ARCH__ >= 800
    real c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a >= b ? a : ((b != b) | (a == a)) ? b : a;
#endif
}

// Multiply the low 32 bits of a by b, with a 64-bit result.
INLINE wide product32(wide a, unsigned int b) { return (wide)(unsigned int)a * b; }
// Convert a word to `wide` and back.
INLINE void spread(word w, wide (&half)[HALVES]) { half[0] = w; }
INLINE word gather(const wide (&half)[HALVES]) { return (word)half[0]; }

#if REAL_BYTES == 4
typedef int real_bits;
INLINE real_bits bits_of(real x) { return __float_as_int(x); }
INLINE real from_bits(real_bits x) { return __int_as_float(x); }
INLINE real to_real(real_bits x) { return (float)x; }
#else
typedef long long real_bits;
INLINE real_bits bits_of(real x) { return __double_as_longlong(x); }
INLINE real from_bits(real_bits x) { return __longlong_as_double(x); }
#endif

template <class F> INLINE real lanewise(real x, F f) { return f(x); }
INLINE scalar lane_max(real x) { return x; }

// The GPU has an instruction for the logarithm in single precision.
#if REAL_BYTES == 4 && !STRICT
constexpr bool HAS_FAST_LOG = true;
INLINE real fast_log(real x) { return __logf(x); }
#else
constexpr bool HAS_FAST_LOG = false;
INLINE real fast_log(real x) { return x; }
#endif

// Set an element whose index is a loop counter, which cannot index registers.
template <int K> INLINE void set_element(real (&values)[K], int k, real value) {
    UNROLL for (int i = 0; i < K; i++) values[i] = i == k ? value : values[i];
}

// Prevent the compiler from unpacking a word long before it is used, which would spill registers.
INLINE void keep_in_register(word& w) { asm("" : "+" VECTOR_REGISTER(w)); }

// Prevent the compiler from computing what depends on a number before a loop, where it would occupy registers.
INLINE void compute_again(int& n) { asm volatile("" : "+" VECTOR_REGISTER(n)); }

// Separate code for each direction has fewer addresses to compute, which pays if the code is short.
constexpr bool ADDRESSES_ARE_COSTLY = true;

// Memory layout. Neighbouring threads read neighbouring packets of 16 bytes, the widest load of a
// thread: a field is [...][packet][slot].
#if REAL_BYTES == 4
typedef float4 packet;
#else
typedef double2 packet;
#endif
constexpr int COMPONENTS_PER_PACKET = 16 / REAL_BYTES;
constexpr bool SLOT_BY_SLOT = false;  // the stride between packets of a slot is the number of slots
#if LARGE
typedef unsigned long long packet_index;
#else
typedef unsigned packet_index;  // address arithmetic in 64 bits costs twice as much
#endif
template <int W> constexpr int WORDS_PER_PACKET = W % 4 == 0 ? 4 : 1;

template <int C>
INLINE void load_packets(const packet* data, packet_index first, packet_index stride, real (&c)[C]) {
    UNROLL for (int i = 0; i < C / COMPONENTS_PER_PACKET; i++) {
        const packet p = data[first + i * stride];
        c[COMPONENTS_PER_PACKET * i] = p.x, c[COMPONENTS_PER_PACKET * i + 1] = p.y;
#if REAL_BYTES == 4
        c[COMPONENTS_PER_PACKET * i + 2] = p.z, c[COMPONENTS_PER_PACKET * i + 3] = p.w;
#endif
    }
}
// With STREAMED the cache need not keep what is stored.
template <bool STREAMED> INLINE void put(packet* at, const packet& value) {
    if constexpr (STREAMED) __stcs(at, value);
    else *at = value;
}
template <bool STREAMED, int C>
INLINE void store_packets(packet* data, packet_index first, packet_index stride, const real (&c)[C]) {
    UNROLL for (int i = 0; i < C / COMPONENTS_PER_PACKET; i++) {
#if REAL_BYTES == 4
        put<STREAMED>(&data[first + i * stride], make_float4(c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3]));
#else
        put<STREAMED>(&data[first + i * stride], make_double2(c[2 * i], c[2 * i + 1]));
#endif
    }
}
template <int W>
INLINE void load_words(const unsigned* data, packet_index first, packet_index stride, word (&w)[W]) {
    UNROLL for (int i = 0; i < W; i += WORDS_PER_PACKET<W>) {
        if constexpr (WORDS_PER_PACKET<W> == 4) {
            const uint4 four = ((const uint4*)data)[first + i / 4 * stride];
            w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
        } else {
            w[i] = data[first + i * stride];
        }
    }
}
template <int W>
INLINE void store_words(unsigned* data, packet_index first, packet_index stride, const word (&w)[W]) {
    UNROLL for (int i = 0; i < W; i += WORDS_PER_PACKET<W>) {
        if constexpr (WORDS_PER_PACKET<W> == 4)
            ((uint4*)data)[first + i / 4 * stride] = make_uint4(w[i], w[i + 1], w[i + 2], w[i + 3]);
        else
            data[first + i * stride] = w[i];
    }
}

// Numbers of any type: a block has C of them for every slot, in packets of 16 bytes as far as possible, followed by
// one of 8 and one of 4 bytes: [packet][slot].
typedef short fixed16;

// With ONCE the caches need not keep what is loaded.
template <bool ONCE, class P> INLINE P fetch(const P* at) {
    if constexpr (ONCE) return __ldcs(at);
    else return *at;
}
template <bool ONCE, int W>
INLINE void load_packed_words(const void* block, unsigned slots, unsigned slot, word (&w)[W]) {
    const uint4* const fours = (const uint4*)block;
    UNROLL for (int i = 0; i < W / 4; i++) {
        const uint4 p = fetch<ONCE>(&fours[i * slots + slot]);
        w[4 * i] = p.x, w[4 * i + 1] = p.y, w[4 * i + 2] = p.z, w[4 * i + 3] = p.w;
    }
    const uint2* const twos = (const uint2*)(fours + W / 4 * slots);
    if constexpr (W % 4 >= 2) {
        const uint2 p = fetch<ONCE>(&twos[slot]);
        w[W / 4 * 4] = p.x, w[W / 4 * 4 + 1] = p.y;
    }
    if constexpr (W % 2 == 1) w[W - 1] = fetch<ONCE>(&((const word*)(twos + (W % 4 / 2) * slots))[slot]);
}
template <int W> INLINE void store_packed_words(void* block, unsigned slots, unsigned slot, const word (&w)[W]) {
    uint4* const fours = (uint4*)block;
    UNROLL for (int i = 0; i < W / 4; i++)
        fours[i * slots + slot] = make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
    uint2* const twos = (uint2*)(fours + W / 4 * slots);
    if constexpr (W % 4 >= 2) twos[slot] = make_uint2(w[W / 4 * 4], w[W / 4 * 4 + 1]);
    if constexpr (W % 2 == 1) ((word*)(twos + (W % 4 / 2) * slots))[slot] = w[W - 1];
}
// Numbers of 16 bits without conversions, of which a multiprocessor does few at a time: the bits of 2^23 + m with an
// integer 0 <= m < 2^16 end with those of m.
constexpr float BITS_OF_INTEGER = 8388608;
INLINE float number_of_half(word w, int half) {
    const word m = __byte_perm(w ^ 0x80008000u, 0x4b00u, half ? 0x5432 : 0x5410);
    return __uint_as_float(m) - (BITS_OF_INTEGER + 32768);
}
// Rounded to the nearest.
INLINE word halves_of_numbers(float low, float high) {
    const float shift = BITS_OF_INTEGER + BITS_OF_INTEGER / 2;
    return __byte_perm(__float_as_uint(low + shift), __float_as_uint(high + shift), 0x5410);
}
template <class T, int C> constexpr int PACKED_WORDS = (C * (int)sizeof(T) + 3) / 4;

template <class T, bool ONCE, int C>
INLINE void load_numbers(const void* block, unsigned slots, unsigned slot, real (&c)[C]) {
    if constexpr (sizeof(T) == 8) {
        const double2* const twos = (const double2*)block;
        UNROLL for (int i = 0; i < C / 2; i++) {
            const double2 p = fetch<ONCE>(&twos[i * slots + slot]);
            c[2 * i] = (real)p.x, c[2 * i + 1] = (real)p.y;
        }
        return;
    }
    word w[PACKED_WORDS<T, C>];
    load_packed_words<ONCE>(block, slots, slot, w);
    UNROLL for (int i = 0; i < C; i++) {
        if constexpr (sizeof(T) == 8) c[i] = (real)__hiloint2double((int)w[2 * i + 1], (int)w[2 * i]);
        else if constexpr (sizeof(T) == 4) c[i] = (real)__uint_as_float(w[i]);
        else c[i] = (real)number_of_half(w[i / 2], i % 2);
    }
}
// Numbers of 16 bits are rounded to the nearest.
template <class T, int C>
INLINE void store_numbers(void* block, unsigned slots, unsigned slot, const real (&c)[C]) {
    word w[PACKED_WORDS<T, C>];
    UNROLL for (int i = 0; i < C; i++) {
        if constexpr (sizeof(T) == 8) {
            w[2 * i] = (word)__double2loint((double)c[i]), w[2 * i + 1] = (word)__double2hiint((double)c[i]);
        } else if constexpr (sizeof(T) == 4) {
            w[i] = __float_as_uint((float)c[i]);
        } else {
            if (i % 2 == 0) w[i / 2] = halves_of_numbers((float)c[i], i + 1 < C ? (float)c[i + 1] : 0);
        }
    }
    store_packed_words(block, slots, slot, w);
}

// K of the C numbers of a slot, from number `first` on: whole packets of 16 bytes, or half of one.
template <class T, int C, int K> INLINE const char* part_of_block(const void* block, unsigned slots, int first) {
    constexpr int PACKET = 16 / (int)sizeof(T);
    static_assert(C % PACKET == 0 && (K % PACKET == 0 || (2 * K == PACKET && sizeof(T) == 2)), "packets of 16 bytes");
    return (const char*)block + (size_t)(16 * (first / PACKET)) * slots;
}
template <class T, int C, int K>
INLINE void load_part(const void* block, unsigned slots, unsigned slot, int first, real (&c)[K]) {
    const char* const part = part_of_block<T, C, K>(block, slots, first);
    if constexpr (sizeof(T) * K >= 16) {
        load_numbers<T, false>(part, slots, slot, c);
    } else {
        const uint2 w = ((const uint2*)part)[2 * (size_t)slot + (first % (2 * K) ? 1 : 0)];
        c[0] = (real)number_of_half(w.x, 0), c[1] = (real)number_of_half(w.x, 1);
        c[2] = (real)number_of_half(w.y, 0), c[3] = (real)number_of_half(w.y, 1);
    }
}
template <class T, int C, int K>
INLINE void store_part(void* block, unsigned slots, unsigned slot, int first, const real (&c)[K]) {
    char* const part = (char*)part_of_block<T, C, K>(block, slots, first);
    if constexpr (sizeof(T) * K >= 16)
        store_numbers<T>(part, slots, slot, c);
    else
        ((uint2*)part)[2 * (size_t)slot + (first % (2 * K) ? 1 : 0)] =
            make_uint2(halves_of_numbers((float)c[0], (float)c[1]), halves_of_numbers((float)c[2], (float)c[3]));
}

// Load the numbers at other places, slot * lanes + lane, of a block that may have another number of lanes.
template <class T, int C>
INLINE void load_numbers_at(const void* block, unsigned slots, const unsigned (&place)[1], unsigned, real (&c)[C]) {
    load_numbers<T, false>(block, slots, place[0], c);
}

// A thread works on one site, so there is only one lane.
INLINE word lane_numbers(unsigned first, const unsigned*) { return first; }
template <class T> INLINE void permute_lanes(T&, const void*, int) {}

// Double precision, whatever `real` is, and the bits of both types.
typedef double double_real;

INLINE double select_double(mask m, double a, double b) { return m ? a : b; }
INLINE double power_of_two(double x) {
    return __longlong_as_double((__double_as_longlong(x + 6755399441055744.0) + 1023) << 52);
}
INLINE double where_below(double x, double most, double other) { return x <= most && x >= -most ? x : other; }
INLINE double to_double(real x) { return (double)x; }
INLINE real from_double(double x) { return (real)x; }
INLINE word float_bits(double x) { return __float_as_uint((float)x); }
INLINE double double_of_float(word w) { return (double)__uint_as_float(w); }
INLINE void double_bits(double x, word& low, word& high) {
    low = (word)__double2loint(x);
    high = (word)__double2hiint(x);
}
INLINE double double_of_bits(word low, word high) { return __hiloint2double((int)high, (int)low); }

INLINE word swap_bytes(word w) { return __byte_perm(w, 0, 0x0123); }

// Copy the first `count` words from and to a place of memory.
template <int K>
INLINE void load_lane_words(const unsigned* data, const unsigned long long (&at)[1], int count, word (&w)[K]) {
    UNROLL for (int i = 0; i < K; i++)
        if (i < count) w[i] = data[at[0] + i];
}
template <int K>
INLINE void store_lane_words(unsigned* data, const unsigned long long (&at)[1], int count, const word (&w)[K]) {
    UNROLL for (int i = 0; i < K; i++)
        if (i < count) data[at[0] + i] = w[i];
}

INLINE void set_lane(word& w, int, unsigned value) { w = value; }
template <class F> INLINE mask lanes_where(word w, F f) { return f(w); }
INLINE scalar lane_of(real x, int) { return x; }
INLINE unsigned lane_of(word w, int) { return w; }
INLINE unsigned lane_add(word w) { return w; }
INLINE unsigned lane_xor(word w) { return w; }

// There are no registers to look up lanes in.
constexpr int LOOKUP_BITS = 0;
INLINE word lookup(const unsigned*, word index) { return index; }

// Change a word of memory that several threads change.
INLINE void add_atomically(unsigned* at, unsigned n) { atomicAdd(at, n); }
INLINE void xor_atomically(unsigned* at, unsigned n) { atomicXor(at, n); }
INLINE void max_atomically(unsigned* at, unsigned n) { atomicMax(at, n); }
