// Elementary functions of a register of reals, with the same source on every machine.
//
// The coefficients belong to polynomials that interpolate a function at the zeros of the Chebyshev polynomial
// of the stated interval. tests/devices/test_maths_coefficients.py computes them again, and the errors. These
// are below half the unit roundoff, 6.0e-8 in single and 1.1e-16 in double precision:
//
//   polynomial            interval of its variable              error in single, double precision
//   sin(pi w)/w in w^2    0 to 1/4                              6.7e-9, 3.3e-19, relative
//   cos(pi w) in w^2      0 to 1/4                              2.3e-10, 6.4e-21
//   atan(y)/(pi y) in y^2 0 to (sqrt(2) - 1)^2               6.3e-10, 1.3e-18, relative
//   p in f (single)       sqrt(1/2) - 1 to sqrt(2) - 1          2.1e-8 of log m
//   p in s^2 (double)     0 to (sqrt(2) - 1)^4                  4.6e-18 of log m
#pragma once

#include "arch/arch.h"

template <int N> INLINE real polynomial(real x, const scalar (&c)[N]) {
    real y = broadcast(c[N - 1]);
    UNROLL for (int i = N - 2; i >= 0; i--) y = fused(y, x, broadcast(c[i]));
    return y;
}

// sin(pi w) and cos(pi w) for |w| <= 1/2.
INLINE real sin_pi(real w) {
#if REAL_BYTES == 4
    return w * polynomial(w * w, {scalar(3.14159264007720325), scalar(-5.16771007666831441),
                                  scalar(2.55007738652891187), scalar(-0.598290411283427535),
                                  scalar(0.0776559122760138694)});
#else
    return w * polynomial(w * w, {scalar(3.14159265358979324), scalar(-5.16771278004996961),
                                  scalar(2.55016403987730047), scalar(-0.599264529318944681),
                                  scalar(0.082145886573102895), scalar(-0.0073704305059169434),
                                  scalar(0.00046629981618983938), scalar(-2.19034970746260172e-5),
                                  scalar(7.69782676822419065e-7)});
#endif
}

INLINE real cos_pi(real w) {
#if REAL_BYTES == 4
    return polynomial(w * w, {scalar(0.999999999779154032), scalar(-4.93480213692894564),
                              scalar(4.05870915476313425), scalar(-1.33521194939055034),
                              scalar(0.23493706859508651), scalar(-0.0243959320975504445)});
#else
    return polynomial(w * w, {scalar(1.0), scalar(-4.9348022005446793), scalar(4.05871212641676754),
                              scalar(-1.33526276885455496), scalar(0.23533063035799502),
                              scalar(-0.025806891376592964), scalar(0.00192957418728123483),
                              scalar(-0.000104637416817521383), scalar(4.30072417273484693e-6),
                              scalar(-1.34352129509532007e-7)});
#endif
}

// atan(t) / pi: with y = t, (t - 1) / (t + 1) or -1 / t for |t| up to tan(pi / 8), up to tan(3 pi / 8) or above.
INLINE real arctangent_over_pi(real t) {
    const real size = larger(t, -t);
    const mask middle = size > broadcast(scalar(0.414213562373095049)), high = size > broadcast(scalar(2.41421356237309505));
    const real above = select(high, broadcast(-1), size - select(middle, broadcast(1), broadcast(0)));
    const real below = select(high, size, select(middle, size + scalar(1), broadcast(1)));
    const real first = select(high, broadcast(0.5), select(middle, broadcast(0.25), broadcast(0)));
    const real y = above / below;
#if REAL_BYTES == 4
    const real series = polynomial(y * y, {scalar(0.318309885983646401), scalar(-0.106103211232556366),
                                           scalar(0.0636561936768980791), scalar(-0.0453258402338633376),
                                           scalar(0.033644810043519352), scalar(-0.0191823253112474688)});
#else
    const real series = polynomial(y * y, {scalar(0.318309886183790691), scalar(-0.106103295394596217),
                                           scalar(0.0636619772365699804), scalar(-0.0454728408628229872),
                                           scalar(0.0353677639659086968), scalar(-0.0289372232860175618),
                                           scalar(0.0244845407380004584), scalar(-0.021208834334443892),
                                           scalar(0.0186111916535386598), scalar(-0.0160272288988456482),
                                           scalar(0.012084716779078377), scalar(-0.00566763395791424797)});
#endif
    const real angle = fused(y, series, first);
    return select(t < broadcast(0), -angle, angle);
}

// log(x) for normal x > 0, from x = 2^e m with sqrt(1/2) <= m < sqrt(2). With f = m - 1, log m is
// f - f^2/2 + f^3 p(f) (single), or, with s = f / (2 + f), 2 s + s^3 p(s^2) (double).
INLINE real natural_log(real x) {
    const scalar ln2 = scalar(0.693147180559945309);
#if REAL_BYTES == 4
    const real_bits e = (bits_of(x) - 0x3f3504f3) >> 23;  // 0x3f3504f3 is sqrt(1/2)
    const real f = from_bits(bits_of(x) - (e << 23)) - scalar(1);
    const real series = polynomial(f, {scalar(0.333333307282), scalar(-0.250003064226),
                                       scalar(0.200010450942), scalar(-0.166412814631),
                                       scalar(0.142144959239), scalar(-0.129981837637),
                                       scalar(0.126223198492), scalar(-0.0790274377239)});
    const real f2 = f * f;
    return to_real(e) * ln2 + (f + f2 * (f * series - scalar(0.5)));
#else
    // 0x3fe6a09e667f3bcd is sqrt(1/2). The exponent is converted to a real by adding it to 1.5 * 2^52, whose
    // bits are 0x4338000000000000, since few machines have an instruction for converting 64-bit integers.
    const real_bits e = (bits_of(x) - 0x3fe6a09e667f3bcdLL) >> 52;
    const real exponent = from_bits(e + 0x4338000000000000LL) - scalar(6755399441055744.0);
    const real f = from_bits(bits_of(x) - (e << 52)) - scalar(1);
    const real s = f / (f + scalar(2));
    const real z = s * s;
    const real series = polynomial(z, {scalar(0.666666666666666969), scalar(0.399999999998995045),
                                       scalar(0.285714286259754849), scalar(0.222222111347950799),
                                       scalar(0.181828891252617221), scalar(0.153317216005560413),
                                       scalar(0.146164496850434059)});
    return exponent * ln2 + (scalar(2) * s + s * z * series);
#endif
}

// Divide a vector by its norm, which is nearly 1: a -> a (1 - e / 2) with |a|^2 = 1 + e, to first order in e. Unlike
// 1 / sqrt(1 + e), which is rounded to a number near 1 and always too large if e is a rounding error, e / 2 has an error
// far below that of the products, so that norms are too large as often as too small.
template <int C> INLINE void to_unit_norm(real (&a)[C]) {
    real excess = broadcast(-1);
    UNROLL for (int i = 0; i < C; i++) excess = fused(a[i], a[i], excess);
    const real share = scalar(-0.5) * excess;
    UNROLL for (int i = 0; i < C; i++) a[i] = fused(a[i], share, a[i]);
}

// log(x) for random numbers only, which do not need a higher accuracy. The GPU's instruction has, as measured with
// all normal floats below 2^32 on an H200, an absolute error of at most 1.8e-7 for 1/2 <= x < 2 and a relative error
// of at most 2.6e-7 for other x.
INLINE real rough_log(real x) {
    if constexpr (HAS_FAST_LOG) return fast_log(x);
    else return natural_log(x);
}
