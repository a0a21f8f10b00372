// SU(N) for any number of colours. All entries of a link are stored. The loops over the rows of a product are rolled
// up, except for the smallest groups on a GPU, so that there are one row of the first factor and of the result at a time
// in registers. On a GPU the second factor is, too, if it fits.
#pragma once

#include "arch/maths.h"
#include "group/algebra.h"
#include "group/complex.h"
#include "group/maximal.h"
#include "group/quaternion.h"

#define ROWS UNROLL_ON_GPU_IF(N <= 4)
#define SECOND UNROLL_ON_GPU_IF(N * N * REAL_BYTES <= 256)  // rows of the second factor

template <int COLOURS> struct SUN {
    // The reals of a matrix are padded to whole packets, and so are those of an element of the algebra.
    static constexpr int N = COLOURS, COMPONENTS = (2 * N * N + 3) / 4 * 4, MATRIX_COMPONENTS = COMPONENTS;
    static constexpr int ALGEBRA_COMPONENTS = (N * N + 2) / 4 * 4;
    // [[i a0, z01, z02, ...], [., i a1, z12, ...], ..., [..., -i (a0 + a1 + ...)]] as a0, a1, ..., z01, z02, ..., z12, ...
    typedef AlgebraElement<ALGEBRA_COMPONENTS> Algebra;
    typedef Links<COMPONENTS> Field;
    typedef ElementField<ALGEBRA_COMPONENTS> AlgebraField;

    struct Row {
        complex c[N];
    };
    struct Matrix {
        Row row[N];
    };
    typedef Matrix Link;

    static INLINE Matrix unpack(const real (&c)[COMPONENTS]) {
        Matrix m;
        UNROLL for (int i = 0; i < N * N; i++) m.row[i / N].c[i % N] = {c[2 * i], c[2 * i + 1]};
        return m;
    }
    static INLINE void pack(const Matrix& m, real (&c)[COMPONENTS]) {
        UNROLL for (int i = 0; i < N * N; i++) c[2 * i] = m.row[i / N].c[i % N].re, c[2 * i + 1] = m.row[i / N].c[i % N].im;
        UNROLL for (int i = 2 * N * N; i < COMPONENTS; i++) c[i] = broadcast(0);
    }
    // A CPU loads and stores the entries of a matrix without those that fill packets, which are its stored reals.
    static LONG_CODE Link load(const Field& f, const Geometry& g, packet_index first, int crossing = 0) {
        if constexpr (SLOT_BY_SLOT) {
            Link u;
            f.read(g, first, crossing, reinterpret_cast<real (&)[2 * N * N]>(u));
            return u;
        } else {
            real c[COMPONENTS];
            f.read(g, first, crossing, c);
            return unpack(c);
        }
    }
    template <bool STREAMED = false>
    static INLINE void store(const Field& f, const Geometry& g, packet_index first, const Link& u) {
        if constexpr (SLOT_BY_SLOT && COMPONENTS == 2 * N * N) {
            f.template write<STREAMED>(g, first, reinterpret_cast<const real (&)[COMPONENTS]>(u));
        } else {
            real c[COMPONENTS];
            pack(u, c);
            f.template write<STREAMED>(g, first, c);
        }
    }

    // The entries of a matrix, [row][column][re, im], and back.
    template <class R> static INLINE void entries(const R (&c)[COMPONENTS], R (&m)[2 * N * N]) {
        UNROLL for (int i = 0; i < 2 * N * N; i++) m[i] = c[i];
    }
    template <class R> static INLINE void components(const R (&m)[2 * N * N], R (&c)[COMPONENTS]) {
        UNROLL for (int i = 0; i < COMPONENTS; i++) c[i] = i < 2 * N * N ? m[i] : R{};
    }

    static INLINE Matrix zero() {
        Matrix m;
        UNROLL for (int i = 0; i < N * N; i++) m.row[i / N].c[i % N] = {broadcast(0), broadcast(0)};
        return m;
    }
    static INLINE Matrix one() {
        Matrix m = zero();
        UNROLL for (int i = 0; i < N; i++) m.row[i].c[i].re = broadcast(1);
        return m;
    }
    static INLINE Matrix matrix(const Link& u) { return u; }
    static INLINE Link link(const Matrix& m) { return m; }

    static LONG_CODE Matrix product(const Matrix& a, const Matrix& b) {
        Matrix p;
        ROWS for (int i = 0; i < N; i++) p.row[i] = times(a.row[i], b);
        return p;
    }
    static INLINE Matrix multiply(const Matrix& a, const Link& u) { return product(a, u); }
    static LONG_CODE Matrix multiply_adjoint(const Matrix& a, const Link& u) {
        Matrix p;
        ROWS for (int i = 0; i < N; i++) p.row[i] = times_adjoint(a.row[i], u);
        return p;
    }
    static LONG_CODE Matrix adjoint_times(const Link& u, const Matrix& a) {
        Matrix p;
        ROWS for (int i = 0; i < N; i++) p.row[i] = adjoint_times(u, i, a);
        return p;
    }
    static LONG_CODE Link transformed(const Link& g, const Link& u, const Link& h) {
        Matrix p;
        ROWS for (int i = 0; i < N; i++) p.row[i] = times_adjoint(times(g.row[i], u), h);
        return p;
    }
    static INLINE Matrix adjoint(const Matrix& m) {
        Matrix a;
        UNROLL for (int i = 0; i < N * N; i++) a.row[i % N].c[i / N] = conj(m.row[i / N].c[i % N]);
        return a;
    }
    template <class Factor> static INLINE Matrix scaled(const Matrix& m, const Factor& s) {
        Matrix p;
        ROWS for (int i = 0; i < N; i++) p.row[i] = scaled(m.row[i], s);
        return p;
    }
    static INLINE void add(Matrix& sum, const Matrix& m) {
        ROWS for (int i = 0; i < N; i++) add(sum.row[i], m.row[i]);
    }
    static INLINE real overlap(const Matrix& a, const Matrix& b) {
        OverlapSum sum;
        ROWS for (int i = 0; i < N; i++) sum.add(a.row[i], b.row[i]);
        return sum.total();
    }
    static INLINE real trace_re(const Matrix& a) {
        real sum = a.row[0].c[0].re;
        UNROLL for (int i = 1; i < N; i++) sum = sum + a.row[i].c[i].re;
        return sum;
    }
    static INLINE real trace_im(const Matrix& a) {
        real sum = a.row[0].c[0].im;
        UNROLL for (int i = 1; i < N; i++) sum = sum + a.row[i].c[i].im;
        return sum;
    }

    // s += a b c^dagger and s += a^dagger b c.
    static LONG_CODE void add_upper(Matrix& s, const Link& a, const Link& b, const Link& c) {
        const Matrix p = product(a, b);
        ROWS for (int i = 0; i < N; i++) add(s.row[i], times_adjoint(p.row[i], c));
    }
    static LONG_CODE void add_lower(Matrix& s, const Link& a, const Link& b, const Link& c) {
        const Matrix p = adjoint_times(a, b);
        ROWS for (int i = 0; i < N; i++) add(s.row[i], times(p.row[i], c));
    }

    // Re Tr (a b (d c)^dagger).
    static LONG_CODE real plaquette(const Link& a, const Link& b, const Link& c, const Link& d) {
        const Matrix p = product(a, b);
        OverlapSum sum;
        ROWS for (int i = 0; i < N; i++) sum.add(p.row[i], times(d.row[i], c));
        return sum.total();
    }

    static INLINE Link normalised(const Link& u) {
        return orthonormal(u, [](const Row& a) { return scaled(a, inverse_root(norm2(a))); });
    }
    static INLINE Link reunitarised(const Link& u) {
        auto unit = [](Row a) {
            to_unit_norm(reinterpret_cast<real (&)[2 * N]>(a));
            return a;
        };
        Link v = orthonormal(u, unit);
        v.row[N - 1] = unit(v.row[N - 1]);  // the phase has rounding errors
        return v;
    }
    // The rows by Gram-Schmidt, where unit_row(row) returns a row with the norm 1; the last one is divided by the
    // determinant.
    template <class Unit> static LONG_CODE Link orthonormal(const Link& u, const Unit& unit_row) {
        Link v = u;
        ROWS for (int k = 0; k < N; k++) {
            v.row[k] = unit_row(v.row[k]);
            ROWS for (int i = k + 1; i < N; i++) {
                subtract(v.row[i], overlap(v.row[i], v.row[k]), v.row[k]);
            }
        }
        Matrix triangle = v;
        const complex determinant = eliminate<false>(triangle, triangle);
        const complex phase = unit(determinant, conj(determinant));
        UNROLL for (int j = 0; j < N; j++) v.row[N - 1].c[j] = v.row[N - 1].c[j] * phase;
        return v;
    }

    // The unitary factor of m by Newton's iteration, as for SU(3) (group/su3.h), divided by the principal N-th root of
    // its determinant. The inverse is that of Gauss and Jordan, whose factors are at most 1 because rows are exchanged
    // where necessary. An error of the inverse of an early step does not matter, because any error within the
    // hermitian factor is removed by the following steps; in the last ones the matrix is nearly unitary.
    static LONG_CODE Link polar(const Matrix& m) {
        const scalar tolerance = scalar(REAL_BYTES == 4 ? 1e-7 : 1e-16);
        Matrix x = m;
        complex phase = {broadcast(1), broadcast(0)};
        mask going = everywhere(true);
        ROLLED
        for (int step = 0; step < 40; step++) {
            const Matrix x_before = x;
            Matrix inverse = one(), triangle = x;
            const complex determinant = eliminate<true>(triangle, inverse), phase_before = phase;
            phase = unit(determinant, determinant);
            const Matrix y = adjoint(inverse);
            const real s = root(root(overlap(y, y) / (overlap(x, x) + TINY))), other = scalar(1) / s;
            real distance2 = broadcast(0);
            ROWS for (int i = 0; i < N; i++) {
                const Row p = scaled(x.row[i], s);
                Row q = scaled(y.row[i], other);
                x.row[i] = p;
                add(x.row[i], q);
                x.row[i] = scaled(x.row[i], broadcast(0.5));
                add(q, scaled(p, broadcast(-1)));
                distance2 = distance2 + norm2(q);
            }
            if (KEEPS_CONVERGED) {
                x = select_lanes(going, x, x_before);
                phase = select_lanes(going, phase, phase_before);
            }
            going = still(going, distance2 > broadcast(tolerance));
            if (!any_lane(going)) break;
        }
        const complex back = conj_root<N>(phase, TINY);
        ROWS for (int i = 0; i < N; i++)
            UNROLL for (int j = 0; j < N; j++) x.row[i].c[j] = x.row[i].c[j] * back;
        return normalised(x);
    }

    // The link u with the largest Re Tr (u m^dagger), as for SU(3): starting from the polar projection, the trace is
    // maximised in one SU(2) subgroup after the other, until the rotations are within rounding errors.
    static INLINE Link maximal(const Matrix& m) {
        return maximised<SUN>(polar(m), m, scalar(REAL_BYTES == 4 ? 1e-12 : 4e-30) * scalar(N));
    }

    // g u with g in the N (N - 1) / 2 SU(2) subgroups in turn, those of rows 0 and 1, 0 and 2, ..., 1 and 2, ...
    // (Cabibbo and Marinari, Phys. Lett. 119B (1982) 387): g = choose(n, w), where Re Tr(g u s^dagger) is the scalar
    // part of g w plus a constant. Only the four entries of u s^dagger are computed that w consists of.
    template <class Choose> static INLINE Link rotated(const Link& link, const Matrix& s, Choose& choose) {
        Link u = link;
        int subgroup = 0;
        ROWS for (int i = 0; i < N - 1; i++) {
            Row u_i = u.row[i];
            const Row s_i = s.row[i];
            ROWS for (int j = i + 1; j < N; j++, subgroup++) {
                Row u_j = u.row[j];
                const Quaternion w = projected(u_i, u_j, s_i, s.row[j]);
                rotate(u_i, u_j, choose(subgroup, w));
                u.row[j] = u_j;
            }
            u.row[i] = u_i;
        }
        return u;
    }

    static INLINE Algebra traceless(const Matrix& m) {
        const real part = trace_im(m) * scalar(1.0 / N);
        Algebra x;
        UNROLL for (int i = 0; i < N - 1; i++) x.a[i] = m.row[i].c[i].im - part;
        int at = N - 1;
        UNROLL for (int i = 0; i < N; i++)
            UNROLL for (int j = i + 1; j < N; j++, at += 2) {
                x.a[at] = scalar(0.5) * (m.row[i].c[j].re - m.row[j].c[i].re);
                x.a[at + 1] = scalar(0.5) * (m.row[i].c[j].im + m.row[j].c[i].im);
            }
        UNROLL for (int i = N * N - 1; i < ALGEBRA_COMPONENTS; i++) x.a[i] = broadcast(0);
        return x;
    }
    static INLINE Matrix matrix(const Algebra& x) {
        Matrix m;
        UNROLL for (int i = 0; i < N - 1; i++) m.row[i].c[i] = {broadcast(0), x.a[i]};
        m.row[N - 1].c[N - 1] = {broadcast(0), last_diagonal(x)};
        int at = N - 1;
        UNROLL for (int i = 0; i < N; i++)
            UNROLL for (int j = i + 1; j < N; j++, at += 2) {
                m.row[i].c[j] = {x.a[at], x.a[at + 1]};
                m.row[j].c[i] = {-x.a[at], x.a[at + 1]};
            }
        return m;
    }
    static INLINE real overlap(const Algebra& x, const Algebra& y) {
        real on = last_diagonal(x) * last_diagonal(y), off = broadcast(0);
        UNROLL for (int i = 0; i < N - 1; i++) on = on + x.a[i] * y.a[i];
        UNROLL for (int i = N - 1; i < N * N - 1; i++) off = off + x.a[i] * y.a[i];
        return on + (off + off);
    }

    // exp(x) u by its Taylor series. The terms fall, after the first ones, faster than a geometric series, so that
    // those that are left out are below the last one, whose entries are below half the unit roundoff.
    static LONG_CODE Link exponential_times(const Algebra& x, const Link& u) {
        const scalar tolerance = scalar(REAL_BYTES == 4 ? 9e-16 : 3e-33);
        const Matrix m = matrix(x);
        Link sum = u, term = u;
        mask going = everywhere(true);
        ROLLED
        for (int n = 1; n <= EXPONENTIAL_TERMS; n++) {
            term = scaled(product(m, term), scalar(1) / (scalar)n);
            const Link before = sum;
            add(sum, term);
            if (KEEPS_CONVERGED) sum = select_lanes(going, sum, before);
            going = still(going, overlap(term, term) > broadcast(tolerance));
            if (!any_lane(going)) break;
        }
        return sum;
    }

    // Replace the last row of a matrix of the group by the one that follows from the others, in any precision: a vector
    // that is orthogonal to them, divided by the determinant with this row. The vector is the projection of one of the
    // unit vectors, that with the longest projection, whose squared length is at least 1 / N.
    template <class R> static INLINE void complete(R (&m)[2 * N * N]) {
        constexpr int LAST = 2 * N * (N - 1);
        R longest = R{} - 1;
        ROLLED
        for (int unit = 0; unit < N; unit++) {
            R row[2 * N], length2 = R{} + 1;
            UNROLL for (int j = 0; j < 2 * N; j++) row[j] = R{};
            row[2 * unit] = R{} + 1;
            ROLLED
            for (int a = 0; a < N - 1; a++) {
                const R re = m[2 * (a * N + unit)], im = -m[2 * (a * N + unit) + 1];
                length2 = length2 - (re * re + im * im);
                UNROLL for (int j = 0; j < 2 * N; j += 2) {
                    const R p = m[2 * a * N + j], q = m[2 * a * N + j + 1];
                    row[j] = row[j] - (re * p - im * q), row[j + 1] = row[j + 1] - (re * q + im * p);
                }
            }
            const auto better = length2 > longest;
            UNROLL for (int j = 0; j < 2 * N; j++) m[LAST + j] = better ? row[j] : m[LAST + j];
            longest = better ? length2 : longest;
        }
        // The determinant, by elimination. Rows are exchanged so that no factor is above 1.
        R a[2 * N * N], re = R{} + 1, im = R{};
        UNROLL for (int j = 0; j < 2 * N * N; j++) a[j] = m[j];
        ROLLED
        for (int k = 0; k < N; k++) {
            R* const pivot = a + 2 * k * N;
            ROLLED
            for (int i = k + 1; i < N; i++) {
                R* const row = a + 2 * i * N;
                const auto exchange = square_of(row + 2 * k) > square_of(pivot + 2 * k);
                UNROLL for (int j = 0; j < 2 * N; j++) {
                    const R p = pivot[j], q = row[j];
                    pivot[j] = exchange ? q : p, row[j] = exchange ? p : q;
                }
                re = exchange ? -re : re, im = exchange ? -im : im;
                const R x = pivot[2 * k], y = pivot[2 * k + 1], u = row[2 * k], v = row[2 * k + 1];
                const R share = (R{} + 1) / (x * x + y * y), c = (u * x + v * y) * share, d = (v * x - u * y) * share;
                UNROLL for (int j = 0; j < 2 * N; j += 2) {
                    row[j] = row[j] - (c * pivot[j] - d * pivot[j + 1]);
                    row[j + 1] = row[j + 1] - (c * pivot[j + 1] + d * pivot[j]);
                }
            }
            const R x = pivot[2 * k], y = pivot[2 * k + 1], product = re * x - im * y;
            im = re * y + im * x;
            re = product;
        }
        const R share = (R{} + 1) / (re * re + im * im);
        re = re * share, im = -im * share;
        UNROLL for (int j = LAST; j < LAST + 2 * N; j += 2) {
            const R x = m[j], y = m[j + 1];
            m[j] = re * x - im * y, m[j + 1] = re * y + im * x;
        }
    }

private:
    template <class> friend struct GeneralMeanLink;  // works with rows

    // A singular matrix has no inverse: pivots are at least so large, so that their squares are normal numbers, and
    // inverse squares are finite.
    static constexpr scalar TINY = scalar(REAL_BYTES == 4 ? 1e-30 : 1e-290);
    static constexpr scalar SMALLEST_PIVOT = scalar(REAL_BYTES == 4 ? 1e-15 : 1e-145);

    // A sum of Re (a b^dagger) over rows, column by column, so that additions need not wait for each other.
    struct OverlapSum {
        real column[N];
        INLINE OverlapSum() { UNROLL for (int j = 0; j < N; j++) column[j] = broadcast(0); }
        INLINE void add(const Row& a, const Row& b) {
            UNROLL for (int j = 0; j < N; j++)
                column[j] = fused(a.c[j].im, b.c[j].im, fused(a.c[j].re, b.c[j].re, column[j]));
        }
        INLINE real total() const {
            real sum = column[0];
            UNROLL for (int j = 1; j < N; j++) sum = sum + column[j];
            return sum;
        }
    };

    // A row times a matrix, a row times the adjoint of a matrix, and row i of u^dagger a.
    static INLINE Row times(const Row& a, const Matrix& m) {
        Row r;
        UNROLL for (int j = 0; j < N; j++) r.c[j] = a.c[0] * m.row[0].c[j];
        SECOND for (int k = 1; k < N; k++)
            UNROLL for (int j = 0; j < N; j++) add_product(r.c[j], a.c[k], m.row[k].c[j]);
        return r;
    }
    static INLINE Row times_adjoint(const Row& a, const Matrix& m) {
        Row r;
        UNROLL for (int j = 0; j < N; j++) r.c[j] = a.c[0] * conj(m.row[j].c[0]);
        SECOND for (int k = 1; k < N; k++)
            UNROLL for (int j = 0; j < N; j++) add_product_conj(r.c[j], a.c[k], m.row[j].c[k]);
        return r;
    }
    static INLINE Row adjoint_times(const Link& u, int i, const Matrix& a) {
        Row r;
        UNROLL for (int j = 0; j < N; j++) r.c[j] = conj(u.row[0].c[i]) * a.row[0].c[j];
        SECOND for (int k = 1; k < N; k++)
            UNROLL for (int j = 0; j < N; j++) add_product_conj(r.c[j], a.row[k].c[j], u.row[k].c[i]);
        return r;
    }
    static INLINE void add(Row& sum, const Row& a) { UNROLL for (int j = 0; j < N; j++) sum.c[j] = sum.c[j] + a.c[j]; }
    // r -= factor a
    static INLINE void subtract(Row& r, const complex& factor, const Row& a) {
        const complex minus = {-factor.re, -factor.im};
        UNROLL for (int j = 0; j < N; j++) add_product(r.c[j], minus, a.c[j]);
    }
    template <class Factor> static INLINE Row scaled(const Row& a, const Factor& s) {
        Row r;
        UNROLL for (int j = 0; j < N; j++) r.c[j] = s * a.c[j];
        return r;
    }
    // The sum of the a b^*.
    static INLINE complex overlap(const Row& a, const Row& b) {
        complex sum = {broadcast(0), broadcast(0)};
        UNROLL for (int j = 0; j < N; j++) add_product_conj(sum, a.c[j], b.c[j]);
        return sum;
    }
    static INLINE real norm2(const Row& a) {
        real re = square(a.c[0].re), im = square(a.c[0].im);
        UNROLL for (int j = 1; j < N; j++) re = fused(a.c[j].re, a.c[j].re, re), im = fused(a.c[j].im, a.c[j].im, im);
        return re + im;
    }
    static INLINE real norm2(const complex& z) { return square(z.re) + square(z.im); }
    template <class R> static INLINE R square_of(const R* z) { return z[0] * z[0] + z[1] * z[1]; }

    // w / |z|
    static INLINE complex unit(const complex& z, const complex& w) {
        return inverse_root(norm2(z)) * w;
    }

    // Gaussian elimination: make `a` an upper triangle, of which no other entries are set, and return its determinant.
    // In every lane two rows are exchanged if the factor between them would be above 1. With INVERTED, b becomes a^-1 b.
    template <bool INVERTED> static LONG_CODE complex eliminate(Matrix& a, Matrix& b) {
        complex determinant = {broadcast(1), broadcast(0)};
        ROWS for (int k = 0; k < N; k++) {
            ROWS for (int i = k + 1; i < N; i++) {
                const mask exchange = norm2(a.row[i].c[k]) > norm2(a.row[k].c[k]);
                exchange_rows(exchange, a.row[k], a.row[i]);
                const complex pivot = a.row[k].c[k];
                const real share = scalar(1) / (norm2(pivot) + TINY);
                const complex quotient = a.row[i].c[k] * conj(pivot), factor = share * quotient;
                subtract(a.row[i], factor, a.row[k]);
                if constexpr (INVERTED) {
                    exchange_rows(exchange, b.row[k], b.row[i]);
                    subtract(b.row[i], factor, b.row[k]);
                }
                const real sign = select(exchange, broadcast(-1), broadcast(1));
                determinant = sign * determinant;
            }
            if constexpr (INVERTED) {
                real& pivot = a.row[k].c[k].re;
                pivot = select(norm2(a.row[k].c[k]) < broadcast(TINY), broadcast(SMALLEST_PIVOT), pivot);
            }
            determinant = determinant * a.row[k].c[k];
        }
        if constexpr (INVERTED) {
            ROWS for (int k = N - 1; k >= 0; k--) {
                const complex pivot = a.row[k].c[k];
                const real share = scalar(1) / norm2(pivot);
                const complex inverse = share * conj(pivot);
                UNROLL for (int j = 0; j < N; j++) b.row[k].c[j] = b.row[k].c[j] * inverse;
                ROWS for (int i = 0; i < k; i++) subtract(b.row[i], a.row[i].c[k], b.row[k]);
            }
        }
        return determinant;
    }
    static INLINE void exchange_rows(mask lanes, Row& a, Row& b) {
        UNROLL for (int j = 0; j < N; j++) {
            const complex p = a.c[j], q = b.c[j];
            a.c[j] = {select(lanes, q.re, p.re), select(lanes, q.im, p.im)};
            b.c[j] = {select(lanes, p.re, q.re), select(lanes, p.im, q.im)};
        }
    }

    // The quaternion of the rows and columns i and j of u s^dagger.
    static INLINE Quaternion projected(const Row& u_i, const Row& u_j, const Row& s_i, const Row& s_j) {
        const complex zero = {broadcast(0), broadcast(0)};
        complex ii = zero, ij = zero, ji = zero, jj = zero;
        UNROLL for (int k = 0; k < N; k++) {
            add_product_conj(ii, u_i.c[k], s_i.c[k]);
            add_product_conj(ij, u_i.c[k], s_j.c[k]);
            add_product_conj(ji, u_j.c[k], s_i.c[k]);
            add_product_conj(jj, u_j.c[k], s_j.c[k]);
        }
        return {{ii.re + jj.re, ij.im + ji.im, ij.re - ji.re, ii.im - jj.im}};
    }
    static INLINE void rotate(Row& u_i, Row& u_j, const Quaternion& g) {
        const complex ii = {g.a[0], g.a[3]}, ij = {g.a[2], g.a[1]}, minus = {-ij.re, ij.im};
        UNROLL for (int k = 0; k < N; k++) {
            const complex p = u_i.c[k], q = u_j.c[k];
            u_i.c[k] = ii * p;
            add_product(u_i.c[k], ij, q);
            u_j.c[k] = q * conj(ii);
            add_product(u_j.c[k], minus, p);
        }
    }
    static INLINE real last_diagonal(const Algebra& x) {
        real sum = -x.a[0];
        UNROLL for (int i = 1; i < N - 1; i++) sum = sum - x.a[i];
        return sum;
    }
};

#undef ROWS
#undef SECOND
