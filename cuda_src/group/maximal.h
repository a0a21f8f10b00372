// Projections onto a group with several SU(2) subgroups: the rotation in one of them that maximises a trace, the
// iteration over all, and the root of a phase.
#pragma once

#include "group/complex.h"
#include "group/quaternion.h"

// The rotation in an SU(2) subgroup that maximises Re Tr (u m^dagger), and how far rotations went.
struct Ascent {
    real moved2 = broadcast(0);
    INLINE Quaternion operator()(int, Quaternion w) {
        w.a[0] = w.a[0] + NEVER_ZERO;
        const Quaternion g = w.conj().times(inverse_root(w.norm2()));
        moved2 = larger(moved2, square(g.a[1]) + square(g.a[2]) + square(g.a[3]));
        return g;
    }
};

// Starting from u, maximise Re Tr (u m^dagger) in one SU(2) subgroup after the other, until all vector parts of the
// quaternions of a step have squared lengths of at most `tolerance`, at most 500 times.
template <class Group>
INLINE typename Group::Link maximised(typename Group::Link u, const typename Group::Matrix& m, scalar tolerance) {
    mask going = everywhere(true);
    ROLLED
    for (int step = 0; step < 500; step++) {
        Ascent ascent;
        const typename Group::Link next = Group::normalised(Group::rotated(u, m, ascent));
        u = KEEPS_CONVERGED ? select_lanes(going, next, u) : next;
        going = still(going, ascent.moved2 > broadcast(tolerance));
        if (!any_lane(going)) break;
    }
    return u;
}

// The complex conjugate of the principal N-th root of a phase: the angle over pi is from tan(phase/2) = im / (1 + re).
template <int N> INLINE complex conj_root(const complex& phase, scalar tiny) {
    const real tangent = phase.im / larger(scalar(1) + phase.re, broadcast(tiny));
#if STRICT
    const real angle = arctangent_over_pi(tangent) * scalar(2.0 / N);
#else
    const real angle = lanewise(tangent, [](scalar t) { return arctangent(t); }) * scalar(2.0 / N / 3.14159265358979324);
#endif
    return {cos_pi(angle), -sin_pi(angle)};
}
