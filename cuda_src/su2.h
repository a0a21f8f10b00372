// SU(2): quaternions, a0 + i a.sigma = [[a0 + i a3, a2 + i a1], [-a2 + i a1, a0 - i a3]].
#pragma once

#include "lattice.h"

struct Quaternion {
    real a[4];

    INLINE Quaternion conj() const { return {{a[0], -a[1], -a[2], -a[3]}}; }
    INLINE real norm2() const { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]; }
    INLINE Quaternion times(real s) const { return {{a[0] * s, a[1] * s, a[2] * s, a[3] * s}}; }
    INLINE Quaternion normalised() const { return times(inverse_root(norm2())); }
};

INLINE Quaternion operator*(const Quaternion& p, const Quaternion& q) {
    return {{p.a[0] * q.a[0] - p.a[1] * q.a[1] - p.a[2] * q.a[2] - p.a[3] * q.a[3],
             p.a[0] * q.a[1] + p.a[1] * q.a[0] - p.a[2] * q.a[3] + p.a[3] * q.a[2],
             p.a[0] * q.a[2] + p.a[2] * q.a[0] - p.a[3] * q.a[1] + p.a[1] * q.a[3],
             p.a[0] * q.a[3] + p.a[3] * q.a[0] - p.a[1] * q.a[2] + p.a[2] * q.a[1]}};
}

struct SU2 {
    static constexpr int N = 2, COMPONENTS = 4;
    typedef Quaternion Link;
    typedef Quaternion Matrix;
    typedef Links<COMPONENTS> Field;

    static INLINE Link load(const Field& f, const Geometry& g, piece_index first, int turn = 0) {
        Link u;
        f.read(g, first, turn, u.a);
        return u;
    }
    static INLINE void store(const Field& f, const Geometry& g, piece_index first, const Link& u) {
        f.write(g, first, u.a);
    }

    static INLINE Matrix zero() { return {{broadcast(0), broadcast(0), broadcast(0), broadcast(0)}}; }
    static INLINE Matrix one() { return {{broadcast(1), broadcast(0), broadcast(0), broadcast(0)}}; }
    static INLINE Matrix matrix(const Link& u) { return u; }
    static INLINE Matrix multiply(const Matrix& a, const Link& u) { return a * u; }
    static INLINE real trace_re(const Matrix& a) { return a.a[0] + a.a[0]; }
    static INLINE real trace_im(const Matrix&) { return broadcast(0); }
    static INLINE Link normalised(const Link& u) { return u.normalised(); }

    // s += a b c^dagger and s += a^dagger b c.
    static INLINE void add_upper(Matrix& s, const Link& a, const Link& b, const Link& c) { add(s, a * b * c.conj()); }
    static INLINE void add_lower(Matrix& s, const Link& a, const Link& b, const Link& c) { add(s, a.conj() * (b * c)); }

    // Re Tr (a b (d c)^dagger).
    static INLINE real plaquette(const Link& a, const Link& b, const Link& c, const Link& d) {
        const Quaternion p = a * b, q = d * c;
        const real half = p.a[0] * q.a[0] + p.a[1] * q.a[1] + p.a[2] * q.a[2] + p.a[3] * q.a[3];
        return half + half;
    }

    // u -> g u with g = choose(w), where Re Tr(g u s^dagger) is the scalar part of g w.
    template <class Choose> static INLINE Link update(const Link& u, const Matrix& s, Choose& choose) {
        const Quaternion w = u * s.conj();
        return normalised(choose(0, w.times(broadcast(2))) * u);
    }

private:
    static INLINE void add(Matrix& s, const Matrix& x) {
        UNROLL for (int i = 0; i < 4; i++) s.a[i] += x.a[i];
    }
};
