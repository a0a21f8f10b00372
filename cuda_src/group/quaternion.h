// Quaternions, a0 + i a.sigma = [[a0 + i a3, a2 + i a1], [-a2 + i a1, a0 - i a3]]: SU(2) if their norm
// is 1, and real multiples of SU(2) matrices otherwise.
#pragma once

#include "arch/maths.h"

struct Quaternion {
    real a[4];

    INLINE Quaternion conj() const { return {{a[0], -a[1], -a[2], -a[3]}}; }
    INLINE real norm2() const { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]; }
    INLINE Quaternion times(real s) const { return {{a[0] * s, a[1] * s, a[2] * s, a[3] * s}}; }
    INLINE Quaternion normalised() const { return times(inverse_root(norm2())); }
    INLINE Quaternion reunitarised() const {
        Quaternion q = *this;
        to_unit_norm(q.a);
        return q;
    }
};

INLINE Quaternion operator*(const Quaternion& p, const Quaternion& q) {
    return {{p.a[0] * q.a[0] - p.a[1] * q.a[1] - p.a[2] * q.a[2] - p.a[3] * q.a[3],
             p.a[0] * q.a[1] + p.a[1] * q.a[0] - p.a[2] * q.a[3] + p.a[3] * q.a[2],
             p.a[0] * q.a[2] + p.a[2] * q.a[0] - p.a[3] * q.a[1] + p.a[1] * q.a[3],
             p.a[0] * q.a[3] + p.a[3] * q.a[0] - p.a[1] * q.a[2] + p.a[2] * q.a[1]}};
}
