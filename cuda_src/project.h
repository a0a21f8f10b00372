// The link that a sum of links is projected to.
#pragma once

#include "maths.h"
#include "transporter.h"

constexpr scalar TINY = scalar(REAL_BYTES == 4 ? 1e-30 : 1e-290);

// SU(2): a sum of its matrices is a multiple of one of them.
INLINE Quaternion polar(const Quaternion& m) { return m.normalised(); }
INLINE Quaternion maximal(const Quaternion& m) { return m.normalised(); }

// The unitary factor of m by Newton's iteration x -> (s x + x^{-dagger} / s) / 2, with s so that
// both terms are as large (N. J. Higham, SIAM J. Sci. Stat. Comput. 7 (1986) 1160), divided by the
// principal cube root of its determinant.
INLINE SU3::Link polar(const SU3::Matrix& m) {
    const scalar tolerance = scalar(REAL_BYTES == 4 ? 1e-7 : 1e-16);  // of the squared distance before a step
    SU3::Matrix x = m;
    complex determinant;
    ROLLED
    for (int step = 0; step < 40; step++) {
        SU3::Matrix y;
        UNROLL for (int i = 0; i < 3; i++) y.row[i] = SU3::third(x.row[(i + 1) % 3], x.row[(i + 2) % 3]);
        determinant = {broadcast(0), broadcast(0)};
        UNROLL for (int i = 0; i < 3; i++) add_product_conj(determinant, x.row[0].c[i], y.row[0].c[i]);
        const real square_root = inverse_root(square(determinant.re) + square(determinant.im) + TINY);
        const complex phase = {determinant.re * square_root, determinant.im * square_root};
        determinant = phase;
        const real size_x = SU3::norm2(x.row[0]) + SU3::norm2(x.row[1]) + SU3::norm2(x.row[2]);
        const real size_y = (SU3::norm2(y.row[0]) + SU3::norm2(y.row[1]) + SU3::norm2(y.row[2])) * square(square_root);
        const real s = root(root((size_y + TINY) / (size_x + TINY)));
        const real to_y = square_root / s;
        real distance2 = broadcast(0);
        UNROLL for (int i = 0; i < 9; i++) {
            complex& a = x.row[i / 3].c[i % 3];
            const complex b = phase * y.row[i / 3].c[i % 3];
            const complex p = {s * a.re, s * a.im}, q = {to_y * b.re, to_y * b.im};
            distance2 = distance2 + square(p.re - q.re) + square(p.im - q.im);
            a = {scalar(0.5) * (p.re + q.re), scalar(0.5) * (p.im + q.im)};
        }
        if (!some_lane(distance2 > broadcast(tolerance))) break;
    }
    // A third of the phase, over pi: tan(phase/2) = im / (1 + re).
    const real tangent = determinant.im / larger(scalar(1) + determinant.re, broadcast(TINY));
    const real third = lanewise(tangent, [](scalar t) { return atan(t); }) * scalar(2.0 / 3.0 / 3.14159265358979324);
    const complex back = {cos_pi(third), -sin_pi(third)};
    SU3::Link u;
    UNROLL for (int i = 0; i < 6; i++) u.row[i / 3].c[i % 3] = x.row[i / 3].c[i % 3] * back;
    return SU3::normalised(u);
}

// Takes a link up to where Re Tr (u m^dagger) is largest over one SU(2) subgroup, then the next.
struct Ascent {
    real moved2 = broadcast(0);
    INLINE Quaternion operator()(int, Quaternion w) {
        w.a[0] = w.a[0] + scalar(REAL_BYTES == 4 ? 1e-18 : 1e-150);
        const real inverse = inverse_root(w.norm2());
        const Quaternion g = w.conj().times(inverse);
        moved2 = larger(moved2, square(g.a[1]) + square(g.a[2]) + square(g.a[3]));
        return g;
    }
};

// The link with the largest Re Tr (u m^dagger).
INLINE SU3::Link maximal(const SU3::Matrix& m) {
    const scalar tolerance = scalar(REAL_BYTES == 4 ? 1e-12 : 4e-30);
    SU3::Link u = polar(m);
    ROLLED
    for (int step = 0; step < 500; step++) {
        Ascent ascent;
        u = SU3::update(u, m, ascent);
        if (!some_lane(ascent.moved2 > broadcast(tolerance))) break;
    }
    return u;
}
