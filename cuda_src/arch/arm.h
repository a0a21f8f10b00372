// What ARM processors have one instruction for, and compilers make many of in the general form of arch/cpu.h.
#pragma once

// Registers by a prefetch, which is of a line of 64 bytes.
#define PREFETCHED (REGISTER_BYTES < 64 ? 64 / REGISTER_BYTES : 1)

// A register that is a whole one of SVE, of the length that -msve-vector-bits names.
#if __ARM_FEATURE_SVE_BITS == 8 * REGISTER_BYTES && LANES > 1
#include <arm_sve.h>
#define SVE 1

#if REAL_BYTES == 4
typedef svfloat32_t sve_real;
typedef svint32_t sve_integer;
INLINE svbool_t every_lane() { return svptrue_b32(); }
INLINE svuint32_t sve_order(mask order) { return svreinterpret_u32((sve_integer)order); }
INLINE real sve_reals(const int16_t* at) { return (real)svcvt_f32_x(every_lane(), svld1sh_s32(every_lane(), at)); }
INLINE void sve_store(int16_t* at, real x) { svst1h(every_lane(), at, svcvt_s32_x(every_lane(), (sve_real)x)); }
#else
typedef svfloat64_t sve_real;
typedef svint64_t sve_integer;
INLINE svbool_t every_lane() { return svptrue_b64(); }
INLINE svuint64_t sve_order(mask order) { return svreinterpret_u64((sve_integer)order); }
INLINE real sve_reals(const int16_t* at) { return (real)svcvt_f64_x(every_lane(), svld1sh_s64(every_lane(), at)); }
INLINE void sve_store(int16_t* at, real x) { svst1h(every_lane(), at, svcvt_s64_x(every_lane(), (sve_real)x)); }
INLINE real sve_reals(const float* at) {
    const svuint64_t bits = svld1uw_u64(every_lane(), (const uint32_t*)at);
    return (real)svcvt_f64_x(every_lane(), svreinterpret_f32(bits));
}
INLINE void sve_store(float* at, real x) {
    svst1w(every_lane(), (uint32_t*)at, svreinterpret_u64(svcvt_f32_x(every_lane(), (sve_real)x)));
}
#endif

INLINE bool sve_any(mask m) { return svptest_any(every_lane(), svcmpne(every_lane(), (sve_integer)m, 0)); }
INLINE real sve_permute(real x, mask order) { return (real)svtbl((sve_real)x, sve_order(order)); }
#endif

// Multiply the low 32 bits of both elements by those of b.
INLINE wide neon_product32(wide a, uint32_t b) {
    const uint32_t all __attribute__((vector_size(8))) = {b, b};
    wide product;
    asm("xtn %0.2s, %1.2d\n\tumull %0.2d, %0.2s, %2.2s" : "=&w"(product) : "w"(a), "w"(all));
    return product;
}
