// SU(3): only the first two rows of a link are stored. The third row is the complex conjugate of their
// cross product. For a product of links two rows are also enough, so that a staple takes fewer
// operations than two products of full matrices.
#pragma once

#include "arch/maths.h"
#include "group/algebra.h"
#include "group/complex.h"
#include "group/maximal.h"
#include "group/quaternion.h"

struct SU3 {
    // The 18 reals of a matrix do not fill whole packets on a GPU, so two more are stored.
    static constexpr int N = 3, COMPONENTS = 12, MATRIX_COMPONENTS = 20, ALGEBRA_COMPONENTS = 8;
    // [[i a0, z01, z02], [., i a1, z12], [., ., -i (a0 + a1)]] as a0, a1, z01, z02, z12
    typedef AlgebraElement<ALGEBRA_COMPONENTS> Algebra;
    typedef Links<COMPONENTS> Field;
    typedef ElementField<ALGEBRA_COMPONENTS> AlgebraField;

    struct Row {
        complex c[3];
    };
    struct Link {
        Row row[2];
    };
    struct Matrix {
        Row row[3];
    };

    static INLINE Link load(const Field& f, const Geometry& g, packet_index first, int crossing = 0) {
        real c[COMPONENTS];
        f.read(g, first, crossing, c);
        Link u;
        UNROLL for (int i = 0; i < 6; i++) u.row[i / 3].c[i % 3] = {c[2 * i], c[2 * i + 1]};
        return u;
    }
    template <bool STREAMED = false>
    static INLINE void store(const Field& f, const Geometry& g, packet_index first, const Link& u) {
        real c[COMPONENTS];
        UNROLL for (int i = 0; i < 6; i++) {
            c[2 * i] = u.row[i / 3].c[i % 3].re;
            c[2 * i + 1] = u.row[i / 3].c[i % 3].im;
        }
        f.template write<STREAMED>(g, first, c);
    }

    // Component i of the complex conjugate of the cross product of two rows.
    static INLINE complex cross(const Row& a, const Row& b, int i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        complex s = a.c[j] * b.c[k];
        const complex minus = {-a.c[k].re, -a.c[k].im};
        add_product(s, minus, b.c[j]);
        return conj(s);
    }
    static INLINE Row third(const Row& a, const Row& b) { return {{cross(a, b, 0), cross(a, b, 1), cross(a, b, 2)}}; }
    static INLINE Matrix matrix(const Link& u) { return {{u.row[0], u.row[1], third(u.row[0], u.row[1])}}; }

    static INLINE Link link(const Matrix& m) { return {{m.row[0], m.row[1]}}; }

    static INLINE Matrix unpack(const real (&c)[MATRIX_COMPONENTS]) {
        Matrix m;
        UNROLL for (int i = 0; i < 9; i++) m.row[i / 3].c[i % 3] = {c[2 * i], c[2 * i + 1]};
        return m;
    }
    static INLINE void pack(const Matrix& m, real (&c)[MATRIX_COMPONENTS]) {
        UNROLL for (int i = 0; i < 9; i++) c[2 * i] = m.row[i / 3].c[i % 3].re, c[2 * i + 1] = m.row[i / 3].c[i % 3].im;
        c[18] = c[19] = broadcast(0);
    }

    // The entries of a matrix, [row][column][re, im], and back.
    template <class R> static INLINE void entries(const R (&c)[COMPONENTS], R (&m)[2 * N * N]) {
        UNROLL for (int i = 0; i < COMPONENTS; i++) m[i] = c[i];
        UNROLL for (int i = 0; i < 3; i++) {
            const int j = 2 * ((i + 1) % 3), k = 2 * ((i + 2) % 3);
            const R &a = c[j], &b = c[j + 1], &p = c[6 + k], &q = c[7 + k], &e = c[k], &f = c[k + 1], &r = c[6 + j], &s = c[7 + j];
            m[12 + 2 * i] = (a * p - b * q) - (e * r - f * s);
            m[13 + 2 * i] = (e * s + f * r) - (a * q + b * p);
        }
    }
    template <class R> static INLINE void components(const R (&m)[2 * N * N], R (&c)[COMPONENTS]) {
        UNROLL for (int i = 0; i < COMPONENTS; i++) c[i] = m[i];
    }
    // Replace the last row of a matrix of the group by the one that follows from the others.
    template <class R> static INLINE void complete(R (&m)[2 * N * N]) {
        R c[COMPONENTS];
        components(m, c);
        entries(c, m);
    }

    static INLINE Matrix zero() {
        Matrix m;
        UNROLL for (int i = 0; i < 9; i++) m.row[i / 3].c[i % 3] = {broadcast(0), broadcast(0)};
        return m;
    }
    static INLINE Matrix one() {
        Matrix m = zero();
        UNROLL for (int i = 0; i < 3; i++) m.row[i].c[i].re = broadcast(1);
        return m;
    }

    // A row times a matrix, and a row times the adjoint of a matrix.
    static INLINE Row times(const Row& a, const Matrix& m) {
        Row r;
        UNROLL for (int j = 0; j < 3; j++) {
            r.c[j] = a.c[0] * m.row[0].c[j];
            add_product(r.c[j], a.c[1], m.row[1].c[j]);
            add_product(r.c[j], a.c[2], m.row[2].c[j]);
        }
        return r;
    }
    static INLINE Row times_adjoint(const Row& a, const Matrix& m) {
        Row r;
        UNROLL for (int j = 0; j < 3; j++) {
            r.c[j] = a.c[0] * conj(m.row[j].c[0]);
            add_product_conj(r.c[j], a.c[1], m.row[j].c[1]);
            add_product_conj(r.c[j], a.c[2], m.row[j].c[2]);
        }
        return r;
    }
    static INLINE Matrix multiply(const Matrix& a, const Link& u) {
        const Matrix m = matrix(u);
        return {{times(a.row[0], m), times(a.row[1], m), times(a.row[2], m)}};
    }
    static INLINE Matrix multiply_adjoint(const Matrix& a, const Link& u) {
        const Matrix m = matrix(u);
        return {{times_adjoint(a.row[0], m), times_adjoint(a.row[1], m), times_adjoint(a.row[2], m)}};
    }
    static INLINE Matrix product(const Matrix& a, const Matrix& b) {
        return {{times(a.row[0], b), times(a.row[1], b), times(a.row[2], b)}};
    }
    static INLINE Matrix adjoint(const Matrix& m) {
        Matrix a;
        UNROLL for (int i = 0; i < 9; i++) a.row[i % 3].c[i / 3] = conj(m.row[i / 3].c[i % 3]);
        return a;
    }
    static INLINE Matrix adjoint_times(const Link& u, const Matrix& a) { return product(adjoint(matrix(u)), a); }
    static INLINE Link transformed(const Link& g, const Link& u, const Link& h) {
        const Matrix m = matrix(u);
        const Row first = times(g.row[0], m), second = times(g.row[1], m);
        const Matrix n = matrix(h);
        return {{times_adjoint(first, n), times_adjoint(second, n)}};
    }
    template <class Factor> static INLINE Matrix scaled(const Matrix& m, const Factor& s) {
        return {{scaled(m.row[0], s), scaled(m.row[1], s), scaled(m.row[2], s)}};
    }
    static INLINE void add(Matrix& sum, const Matrix& m) {
        UNROLL for (int i = 0; i < 9; i++) sum.row[i / 3].c[i % 3] = sum.row[i / 3].c[i % 3] + m.row[i / 3].c[i % 3];
    }
    static INLINE real overlap(const Matrix& a, const Matrix& b) {
        real sum = broadcast(0);
        UNROLL for (int i = 0; i < 9; i++) {
            sum = fused(a.row[i / 3].c[i % 3].re, b.row[i / 3].c[i % 3].re, sum);
            sum = fused(a.row[i / 3].c[i % 3].im, b.row[i / 3].c[i % 3].im, sum);
        }
        return sum;
    }
    // The rows of adj(m^dagger), whose products with those of m are the complex conjugate of the determinant.
    static INLINE Matrix cofactors(const Matrix& m) {
        return {{third(m.row[1], m.row[2]), third(m.row[2], m.row[0]), third(m.row[0], m.row[1])}};
    }
    static INLINE complex determinant(const Matrix& m, const Matrix& cofactors) {
        complex sum = {broadcast(0), broadcast(0)};
        UNROLL for (int i = 0; i < 3; i++) add_product_conj(sum, m.row[0].c[i], cofactors.row[0].c[i]);
        return sum;
    }
    static INLINE real trace_re(const Matrix& a) { return a.row[0].c[0].re + a.row[1].c[1].re + a.row[2].c[2].re; }
    static INLINE real trace_im(const Matrix& a) { return a.row[0].c[0].im + a.row[1].c[1].im + a.row[2].c[2].im; }

    static INLINE real norm2(const Row& a) {
        real n = fused(a.c[0].im, a.c[0].im, square(a.c[0].re));
        UNROLL for (int i = 1; i < 3; i++) n = fused(a.c[i].im, a.c[i].im, fused(a.c[i].re, a.c[i].re, n));
        return n;
    }
    template <class Factor> static INLINE Row scaled(const Row& a, const Factor& s) {
        return {{s * a.c[0], s * a.c[1], s * a.c[2]}};
    }
    static INLINE Link normalised(const Link& u) {
        return orthonormal(u, [](const Row& a) { return scaled(a, inverse_root(norm2(a))); });
    }
    static INLINE Link reunitarised(const Link& u) {
        return orthonormal(u, [](Row a) {
            to_unit_norm(reinterpret_cast<real (&)[6]>(a));
            return a;
        });
    }
    // Gram-Schmidt; unit(row) returns a row with the norm 1.
    template <class Unit> static INLINE Link orthonormal(const Link& u, const Unit& unit) {
        Link v;
        v.row[0] = unit(u.row[0]);
        complex overlap = {broadcast(0), broadcast(0)};
        UNROLL for (int i = 0; i < 3; i++) add_product_conj(overlap, u.row[1].c[i], v.row[0].c[i]);
        Row second = u.row[1];
        const complex minus = {-overlap.re, -overlap.im};
        UNROLL for (int i = 0; i < 3; i++) add_product(second.c[i], minus, v.row[0].c[i]);
        v.row[1] = unit(second);
        return v;
    }

    // s += a b c^dagger and s += a^dagger b c.
    static INLINE void add_upper(Matrix& s, const Link& a, const Link& b, const Link& c) {
        const Matrix full_b = matrix(b);
        const Row p0 = times(a.row[0], full_b), p1 = times(a.row[1], full_b);
        const Matrix full_c = matrix(c);
        add_link(s, times_adjoint(p0, full_c), times_adjoint(p1, full_c));
    }
    static INLINE void add_lower(Matrix& s, const Link& a, const Link& b, const Link& c) {
        const Matrix full_c = matrix(c);
        const Row p0 = times(b.row[0], full_c), p1 = times(b.row[1], full_c);
        const Matrix p = {{p0, p1, third(p0, p1)}};
        add_link(s, adjoint_column_times(a, 0, p), adjoint_column_times(a, 1, p));
    }

    // Re Tr (a b (d c)^dagger).
    static INLINE real plaquette(const Link& a, const Link& b, const Link& c, const Link& d) {
        const Matrix full_b = matrix(b), full_c = matrix(c);
        const Row p0 = times(a.row[0], full_b), p1 = times(a.row[1], full_b);
        const Row q0 = times(d.row[0], full_c), q1 = times(d.row[1], full_c);
        return overlap_re(p0, q0) + overlap_re(p1, q1) + overlap_re(third(p0, p1), third(q0, q1));
    }

    // The unitary factor of m by Newton's iteration x -> (s x + x^{-dagger} / s) / 2, with s such that both
    // terms have the same norm (N. J. Higham, SIAM J. Sci. Stat. Comput. 7 (1986) 1160), divided by the
    // principal cube root of its determinant. The iteration converges quadratically: if the singular values of
    // the two terms are exp(+-e), their distance is about 2 e, and those of their mean differ from 1 by e^2 / 2.
    // So at a squared distance of 1e-7 or 1e-16 an error of at most 1.3e-8 or 1.3e-17 is left, below the rounding
    // error. Of more than 300000 random matrices, some of them singular, none needed more than 7 steps, so the
    // limit of 40 is ample. A matrix with a NaN ends the loop at once.
    static INLINE Link polar(const Matrix& m) {
        const scalar tolerance = scalar(REAL_BYTES == 4 ? 1e-7 : 1e-16);
        // A singular matrix has no inverse: `tiny` limits 1 / |determinant| to 1e15 or 1e145, whose squares are finite.
        const scalar tiny = scalar(REAL_BYTES == 4 ? 1e-30 : 1e-290);
        Matrix x = m;
        complex determinant = {broadcast(1), broadcast(0)};
        mask going = everywhere(true);
        ROLLED
        for (int step = 0; step < 40; step++) {
            const Matrix x_before = x;
            const complex determinant_before = determinant;
            const Matrix y = cofactors(x);
            const complex whole = SU3::determinant(x, y);
            const real square_root = inverse_root(square(whole.re) + square(whole.im) + tiny);
            const complex phase = determinant = square_root * whole;
            const real size_x = norm2(x.row[0]) + norm2(x.row[1]) + norm2(x.row[2]);
            const real size_y = (norm2(y.row[0]) + norm2(y.row[1]) + norm2(y.row[2])) * square(square_root);
            const real s = root(root((size_y + tiny) / (size_x + tiny)));
            const real to_y = square_root / s;
            real distance2 = broadcast(0);
            UNROLL for (int i = 0; i < 9; i++) {
                complex& a = x.row[i / 3].c[i % 3];
                const complex b = phase * y.row[i / 3].c[i % 3];
                const complex p = s * a, q = to_y * b;
                distance2 = distance2 + square(p.re - q.re) + square(p.im - q.im);
                a = scalar(0.5) * (p + q);
            }
            if (KEEPS_CONVERGED) {
                x = select_lanes(going, x, x_before);
                determinant = select_lanes(going, determinant, determinant_before);
            }
            going = still(going, distance2 > broadcast(tolerance));
            if (!any_lane(going)) break;
        }
        const complex back = conj_root<3>(determinant, tiny);
        Link u;
        UNROLL for (int i = 0; i < 6; i++) u.row[i / 3].c[i % 3] = x.row[i / 3].c[i % 3] * back;
        return normalised(u);
    }

    // The link u with the largest Re Tr (u m^dagger). Starting from the polar projection, the trace is
    // maximised in one SU(2) subgroup after the other, until the rotations are within rounding errors: the
    // vector parts of the quaternions of a step have squared lengths of at most 1e-12 or 4e-30, that is lengths
    // of about 17 times the unit roundoff, 6.0e-8 or 1.1e-16.
    //
    // The convergence is linear. In double precision, 100000 averages of seven random links needed at most 57
    // steps, but 10 of 100000 matrices of Gaussian random numbers were not done after 500. The result is then
    // the link after 500 steps: it is in the group, and its last rotations had vector parts of at most 1e-5.
    static INLINE Link maximal(const Matrix& m) {
        return maximised<SU3>(polar(m), m, scalar(REAL_BYTES == 4 ? 1e-12 : 4e-30));
    }
    // g u with g in the three SU(2) subgroups in turn (Cabibbo and Marinari, Phys. Lett. 119B
    // (1982) 387), g = choose(i, w), where Re Tr(g u s^dagger) is the scalar part of g w plus a constant.
    template <class Choose> static INLINE Link rotated(const Link& link, const Matrix& s, Choose& choose) {
        Matrix u = matrix(link);
        Matrix w = {{times_adjoint(u.row[0], s), times_adjoint(u.row[1], s), times_adjoint(u.row[2], s)}};
        rotate<0, 1>(u, w, choose(0, projected<0, 1>(w)));
        rotate<0, 2>(u, w, choose(1, projected<0, 2>(w)));
        rotate<1, 2>(u, w, choose(2, projected<1, 2>(w)));
        return {{u.row[0], u.row[1]}};
    }

    static INLINE Algebra traceless(const Matrix& m) {
        const real third = (m.row[0].c[0].im + m.row[1].c[1].im + m.row[2].c[2].im) * scalar(1.0 / 3.0);
        Algebra x;
        x.a[0] = m.row[0].c[0].im - third;
        x.a[1] = m.row[1].c[1].im - third;
        UNROLL for (int k = 0; k < 3; k++) {
            const int i = k / 2, j = k == 0 ? 1 : 2;
            x.a[2 + 2 * k] = scalar(0.5) * (m.row[i].c[j].re - m.row[j].c[i].re);
            x.a[3 + 2 * k] = scalar(0.5) * (m.row[i].c[j].im + m.row[j].c[i].im);
        }
        return x;
    }
    static INLINE Matrix matrix(const Algebra& x) {
        Matrix m;
        m.row[0].c[0] = {broadcast(0), x.a[0]};
        m.row[1].c[1] = {broadcast(0), x.a[1]};
        m.row[2].c[2] = {broadcast(0), -(x.a[0] + x.a[1])};
        UNROLL for (int k = 0; k < 3; k++) {
            const int i = k / 2, j = k == 0 ? 1 : 2;
            m.row[i].c[j] = {x.a[2 + 2 * k], x.a[3 + 2 * k]};
            m.row[j].c[i] = {-x.a[2 + 2 * k], x.a[3 + 2 * k]};
        }
        return m;
    }
    static INLINE real overlap(const Algebra& x, const Algebra& y) {
        real off = x.a[2] * y.a[2];
        UNROLL for (int i = 3; i < 8; i++) off = off + x.a[i] * y.a[i];
        return x.a[0] * y.a[0] + x.a[1] * y.a[1] + (x.a[0] + x.a[1]) * (y.a[0] + y.a[1]) + (off + off);
    }

    // exp(x) u. By the Cayley-Hamilton theorem x^3 = i d - t x with i d = det x and t = -Tr x^2 / 2, so
    // that Horner's scheme for the Taylor series has three coefficients: exp(x) = p0 + p1 x + p2 x^2.
    static INLINE Link exponential_times(const Algebra& x, const Link& u) {
        const real a0 = x.a[0], a1 = x.a[1], a2 = -(a0 + a1);
        const complex z01 = {x.a[2], x.a[3]}, z02 = {x.a[4], x.a[5]}, z12 = {x.a[6], x.a[7]};
        const real n01 = square(z01.re) + square(z01.im), n02 = square(z02.re) + square(z02.im);
        const real n12 = square(z12.re) + square(z12.im);
        const complex cycle = z01 * z12;  // and times z02^*, the closed path 0 -> 1 -> 2 -> 0
        const real cycle_im = cycle.im * z02.re - cycle.re * z02.im;
        const real t = scalar(0.5) * (square(a0) + square(a1) + square(a2)) + n01 + n02 + n12;
        const real d = a0 * (n12 - a1 * a2) + a2 * n01 + a1 * n02 - (cycle_im + cycle_im);

        complex p0 = {broadcast(scalar(inverse_factorial(EXPONENTIAL_TERMS))), broadcast(0)};
        complex p1 = {broadcast(0), broadcast(0)}, p2 = p1;
        UNROLL for (int n = EXPONENTIAL_TERMS - 1; n >= 0; n--) {
            const complex next = {scalar(inverse_factorial(n)) - d * p2.im, d * p2.re};
            const complex middle = {p0.re - t * p2.re, p0.im - t * p2.im};
            p2 = p1, p1 = middle, p0 = next;
        }

        // The first two rows of x^2, which is hermitian, and of exp(x).
        complex s01 = conj(z12) * z02, s12 = conj(z01) * z02;
        s01 = {-s01.re + a2 * z01.im, -s01.im - a2 * z01.re};
        s12 = {-s12.re + a0 * z12.im, -s12.im - a0 * z12.re};
        const complex s02 = {cycle.re + a1 * z02.im, cycle.im - a1 * z02.re};
        const real s00 = -(square(a0) + n01 + n02), s11 = -(square(a1) + n01 + n12);
        auto entry = [&](const complex& first, const complex& second) {
            complex e = p1 * first;
            add_product(e, p2, second);
            return e;
        };
        const complex zero = {broadcast(0), broadcast(0)};
        Row first, second;
        first.c[0] = p0 + entry({zero.re, a0}, {s00, zero.im});
        first.c[1] = entry(z01, s01);
        first.c[2] = entry(z02, s02);
        second.c[0] = entry({-z01.re, z01.im}, conj(s01));
        second.c[1] = p0 + entry({zero.re, a1}, {s11, zero.im});
        second.c[2] = entry(z12, s12);
        const Matrix full = matrix(u);
        return {{times(first, full), times(second, full)}};
    }

private:
    static INLINE real overlap_re(const Row& a, const Row& b) {
        real s = fused(a.c[0].im, b.c[0].im, a.c[0].re * b.c[0].re);
        UNROLL for (int i = 1; i < 3; i++) s = fused(a.c[i].im, b.c[i].im, fused(a.c[i].re, b.c[i].re, s));
        return s;
    }
    // Row i of a^dagger p.
    static INLINE Row adjoint_column_times(const Link& a, int i, const Matrix& p) {
        const complex a0 = conj(a.row[0].c[i]), a1 = conj(a.row[1].c[i]);
        const complex a2 = conj(cross(a.row[0], a.row[1], i));
        Row r;
        UNROLL for (int j = 0; j < 3; j++) {
            r.c[j] = a0 * p.row[0].c[j];
            add_product(r.c[j], a1, p.row[1].c[j]);
            add_product(r.c[j], a2, p.row[2].c[j]);
        }
        return r;
    }
    static INLINE void add_link(Matrix& s, const Row& a, const Row& b) {
        UNROLL for (int j = 0; j < 3; j++) {
            s.row[0].c[j] = s.row[0].c[j] + a.c[j];
            s.row[1].c[j] = s.row[1].c[j] + b.c[j];
            s.row[2].c[j] = s.row[2].c[j] + cross(a, b, j);
        }
    }
    template <int I, int J> static INLINE Quaternion projected(const Matrix& w) {
        const complex ii = w.row[I].c[I], ij = w.row[I].c[J], ji = w.row[J].c[I], jj = w.row[J].c[J];
        return {{ii.re + jj.re, ij.im + ji.im, ij.re - ji.re, ii.im - jj.im}};
    }
    template <int I, int J> static INLINE void rotate_rows(Matrix& m, const Quaternion& g) {
        const complex ii = {g.a[0], g.a[3]}, ij = {g.a[2], g.a[1]};
        UNROLL for (int k = 0; k < 3; k++) {
            const complex p = m.row[I].c[k], q = m.row[J].c[k];
            m.row[I].c[k] = ii * p;
            add_product(m.row[I].c[k], ij, q);
            m.row[J].c[k] = q * conj(ii);
            const complex minus = {-ij.re, ij.im};
            add_product(m.row[J].c[k], minus, p);
        }
    }
    // The compiler omits the elements of w and u that no later subgroup needs.
    template <int I, int J> static INLINE void rotate(Matrix& u, Matrix& w, const Quaternion& g) {
        rotate_rows<I, J>(w, g);
        rotate_rows<I, J>(u, g);
    }
};
