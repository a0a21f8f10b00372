// Quaternions, a0 + i a.sigma = [[a0 + i a3, a2 + i a1], [-a2 + i a1, a0 - i a3]]: SU(2) if their norm
// is 1, and real multiples of SU(2) matrices otherwise.
#pragma once

#include "arch/maths.h"

struct Quaternion {
    real a[4];

    INLINE Quaternion conj() const { return {{a[0], -a[1], -a[2], -a[3]}}; }
    INLINE real norm2() const {
        return fused(a[3], a[3], fused(a[2], a[2], fused(a[1], a[1], a[0] * a[0])));
    }
    template <class Factor> INLINE Quaternion times(const Factor& s) const {
        return {{a[0] * s, a[1] * s, a[2] * s, a[3] * s}};
    }
    INLINE Quaternion normalised() const { return times(inverse_root(norm2())); }
    INLINE Quaternion reunitarised() const {
        Quaternion q = *this;
        to_unit_norm(q.a);
        return q;
    }
};

INLINE Quaternion operator*(const Quaternion& p, const Quaternion& q) {
    const real (&x)[4] = p.a, (&y)[4] = q.a;
    return {{fused_minus(x[3], y[3], fused_minus(x[2], y[2], fused_minus(x[1], y[1], x[0] * y[0]))),
             fused(x[3], y[2], fused_minus(x[2], y[3], fused(x[1], y[0], x[0] * y[1]))),
             fused(x[1], y[3], fused_minus(x[3], y[1], fused(x[2], y[0], x[0] * y[2]))),
             fused(x[2], y[1], fused_minus(x[1], y[2], fused(x[3], y[0], x[0] * y[3])))}};
}
