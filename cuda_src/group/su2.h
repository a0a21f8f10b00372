// SU(2): links and sums of links are quaternions.
#pragma once

#include "group/algebra.h"
#include "group/quaternion.h"

struct SU2 {
    static constexpr int N = 2, COMPONENTS = 4, MATRIX_COMPONENTS = 4, ALGEBRA_COMPONENTS = 4;
    typedef Quaternion Link;
    typedef Quaternion Matrix;
    typedef AlgebraElement<ALGEBRA_COMPONENTS> Algebra;  // i a.sigma; a[0] is 0
    typedef Links<COMPONENTS> Field;
    typedef ElementField<ALGEBRA_COMPONENTS> AlgebraField;

    static INLINE Link load(const Field& f, const Geometry& g, packet_index first, int crossing = 0) {
        Link u;
        f.read(g, first, crossing, u.a);
        return u;
    }
    template <bool STREAMED = false>
    static INLINE void store(const Field& f, const Geometry& g, packet_index first, const Link& u) {
        f.template write<STREAMED>(g, first, u.a);
    }
    static INLINE Matrix unpack(const real (&c)[MATRIX_COMPONENTS]) {
        Matrix m;
        UNROLL for (int i = 0; i < 4; i++) m.a[i] = c[i];
        return m;
    }
    static INLINE void pack(const Matrix& m, real (&c)[MATRIX_COMPONENTS]) {
        UNROLL for (int i = 0; i < 4; i++) c[i] = m.a[i];
    }

    // The entries of a matrix, [row][column][re, im], and back.
    template <class R> static INLINE void entries(const R (&c)[COMPONENTS], R (&m)[2 * N * N]) {
        m[0] = c[0], m[1] = c[3], m[2] = c[2], m[3] = c[1];
        m[4] = -c[2], m[5] = c[1], m[6] = c[0], m[7] = -c[3];
    }
    template <class R> static INLINE void components(const R (&m)[2 * N * N], R (&c)[COMPONENTS]) {
        c[0] = m[0], c[1] = m[3], c[2] = m[2], c[3] = m[1];
    }
    // Replace the last row of a matrix of the group by the one that follows from the other.
    template <class R> static INLINE void complete(R (&m)[2 * N * N]) {
        R c[COMPONENTS];
        components(m, c);
        entries(c, m);
    }

    static INLINE Matrix zero() { return {{broadcast(0), broadcast(0), broadcast(0), broadcast(0)}}; }
    static INLINE Matrix one() { return {{broadcast(1), broadcast(0), broadcast(0), broadcast(0)}}; }
    static INLINE Matrix matrix(const Link& u) { return u; }
    static INLINE Link link(const Matrix& m) { return m; }
    static INLINE Matrix adjoint(const Matrix& m) { return m.conj(); }
    static INLINE Matrix product(const Matrix& a, const Matrix& b) { return a * b; }
    static INLINE Matrix multiply(const Matrix& a, const Link& u) { return a * u; }
    static INLINE Matrix multiply_adjoint(const Matrix& a, const Link& u) { return a * u.conj(); }
    static INLINE Matrix adjoint_times(const Link& u, const Matrix& a) { return u.conj() * a; }
    static INLINE Link transformed(const Link& g, const Link& u, const Link& h) { return g * u * h.conj(); }
    template <class Factor> static INLINE Matrix scaled(const Matrix& m, const Factor& s) { return m.times(s); }
    static INLINE void add(Matrix& s, const Matrix& x) { UNROLL for (int i = 0; i < 4; i++) s.a[i] = s.a[i] + x.a[i]; }
    static INLINE real trace_re(const Matrix& a) { return a.a[0] + a.a[0]; }
    static INLINE real trace_im(const Matrix&) { return broadcast(0); }
    static INLINE real overlap(const Matrix& a, const Matrix& b) {
        const real (&x)[4] = a.a, (&y)[4] = b.a;
        const real half = fused(x[3], y[3], fused(x[2], y[2], fused(x[1], y[1], x[0] * y[0])));
        return half + half;
    }
    static INLINE Link normalised(const Link& u) { return u.normalised(); }
    static INLINE Link reunitarised(const Link& u) { return u.reunitarised(); }

    static INLINE void add_upper(Matrix& s, const Link& a, const Link& b, const Link& c) { add(s, a * b * c.conj()); }
    static INLINE void add_lower(Matrix& s, const Link& a, const Link& b, const Link& c) { add(s, a.conj() * (b * c)); }

    static INLINE real plaquette(const Link& a, const Link& b, const Link& c, const Link& d) {
        return overlap(a * b, d * c);
    }

    // A sum of SU(2) matrices is a multiple of an SU(2) matrix, so both projections are the same.
    static INLINE Link polar(const Matrix& m) { return m.normalised(); }
    static INLINE Link maximal(const Matrix& m) { return m.normalised(); }

    // g u with g = choose(0, w), where Re Tr(g u s^dagger) is the scalar part of g w.
    template <class Choose> static INLINE Link rotated(const Link& u, const Matrix& s, Choose& choose) {
        const Quaternion w = u * s.conj();
        return choose(0, w.times(broadcast(2))) * u;
    }

    static INLINE Algebra traceless(const Matrix& m) { return {{broadcast(0), m.a[1], m.a[2], m.a[3]}}; }
    static INLINE Matrix matrix(const Algebra& x) { return {{x.a[0], x.a[1], x.a[2], x.a[3]}}; }
    static INLINE real overlap(const Algebra& x, const Algebra& y) { return overlap(matrix(x), matrix(y)); }

    // exp(i a.sigma) = cos |a| + i a.sigma sin |a| / |a|, as Taylor series in |a|^2.
    static INLINE Link exponential_times(const Algebra& x, const Link& u) {
        const real minus2 = -(square(x.a[1]) + square(x.a[2]) + square(x.a[3]));
        real cosine = broadcast(0), sine = broadcast(0);
        UNROLL for (int n = EXPONENTIAL_TERMS; n >= 0; n -= 2) {
            cosine = fused(cosine, minus2, broadcast(scalar(inverse_factorial(n))));
            sine = fused(sine, minus2, broadcast(scalar(inverse_factorial(n + 1))));
        }
        const Quaternion e = {{cosine, sine * x.a[1], sine * x.a[2], sine * x.a[3]}};
        return e * u;
    }
};
