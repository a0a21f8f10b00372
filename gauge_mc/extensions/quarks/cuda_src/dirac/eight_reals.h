// Links of SU(3) as 8 reals: 5 for the first row, which is a point of a sphere in 6 dimensions, and 3 for an element of
// SU(2), a point of a sphere in 4 dimensions.
//
// A point (1, 0, ...) cos(2 phi) + n sin(2 phi) is stored as y = n r / (1 + r) with r = tan(phi), from its stereographic
// projection r n. So the numbers are at most 1, their rounding errors move a point everywhere by as little, and no root of
// a small difference is taken, as in the form with two phases by B. Bunk and R. Sommer, Comput. Phys. Commun. 40 (1986)
// 229. With m = 1 - |y| the point is (m^2 - |y|^2, 2 m y) / (m^2 + |y|^2).
//
// For the first row a, let w = (m + i y0, y1 + i y2, y3 + i y4), so that a + (1, 0, 0) = 2 m w / |w|^2. Then
//   R_j = -p e_j + 2 m w_j^* w / (|w|^2 |w_0|),  p = w_0^* / |w_0|,  j = 1, 2,
// completes it to a matrix of SU(3) without a singularity. The lower rows of the link are those of a product of an element
// of SU(2) with R, of which the third one is rebuilt as always.
#pragma once

struct EightReals {
    static constexpr int C = 8;

    static INLINE void entries(const real (&c)[C], real (&u)[MATRIX_REALS]) {
        real first[GROUP::COMPONENTS], r[2][6], q[4];
        complete(c, first, r);
        const real t2 = square(c[5]) + square(c[6]) + square(c[7]);
        const real m = rest_of(t2), scale = scalar(2) * m / (m * m + t2);
        q[0] = scale * m - scalar(1);
        UNROLL for (int i = 0; i < 3; i++) q[i + 1] = scale * c[5 + i];
        UNROLL for (int j = 0; j < 3; j++) {
            const real a = r[0][2 * j], b = r[0][2 * j + 1], d = r[1][2 * j], e = r[1][2 * j + 1];
            first[6 + 2 * j] = q[0] * a - q[3] * b + q[2] * d - q[1] * e;
            first[7 + 2 * j] = q[0] * b + q[3] * a + q[2] * e + q[1] * d;
        }
        GROUP::entries(first, u);
    }

    static INLINE void numbers(const real (&u)[MATRIX_REALS], real (&c)[C]) {
        real n[5], first[GROUP::COMPONENTS], r[2][6];
        UNROLL for (int i = 0; i < 5; i++) n[i] = u[i + 1];
        project_point(u[0], n);
        UNROLL for (int i = 0; i < 5; i++) c[i] = n[i];
        complete(c, first, r);
        real q[4] = {broadcast(0), broadcast(0), broadcast(0), broadcast(0)};
        UNROLL for (int j = 0; j < 3; j++) {  // the products of the second row with R_1^* and R_2^*
            const real x = u[6 + 2 * j], y = u[7 + 2 * j];
            q[0] = q[0] + x * r[0][2 * j] + y * r[0][2 * j + 1];
            q[3] = q[3] + y * r[0][2 * j] - x * r[0][2 * j + 1];
            q[2] = q[2] + x * r[1][2 * j] + y * r[1][2 * j + 1];
            q[1] = q[1] + y * r[1][2 * j] - x * r[1][2 * j + 1];
        }
        real t[3] = {q[1], q[2], q[3]};
        project_point(q[0], t);
        UNROLL for (int i = 0; i < 3; i++) c[5 + i] = t[i];
    }

private:
    // 1 - |y|, which is never 0.
    static INLINE real rest_of(real y2) { return larger(scalar(1) - root(y2), broadcast(scalar(1e-18))); }

    // The point (a, n) as y, in the place of n. Near a = -1, 1 + a is |n|^2 / (1 - a).
    template <int K> static INLINE void project_point(real a, real (&n)[K]) {
        real n2 = broadcast(0);
        UNROLL for (int i = 0; i < K; i++) n2 = n2 + square(n[i]);
        const auto behind = a < broadcast(0), pole = n2 < broadcast(scalar(1e-30));
        const real above = select(behind, n2 / (scalar(1) - a), scalar(1) + a);
        const real scale = scalar(1) / (above + root(n2) + select(pole, broadcast(1), broadcast(0)));
        UNROLL for (int i = 0; i < K; i++) n[i] = n[i] * scale;
        n[K - 1] = select(pole, select(behind, broadcast(1), broadcast(0)), n[K - 1]);
    }

    // The first row, and R.
    static INLINE void complete(const real (&c)[C], real (&first)[GROUP::COMPONENTS], real (&r)[2][6]) {
        real y2 = square(c[0]);
        UNROLL for (int i = 1; i < 5; i++) y2 = y2 + square(c[i]);
        const real m = rest_of(y2), k = scalar(2) * m / (m * m + y2);
        const real w[6] = {m, c[0], c[1], c[2], c[3], c[4]};
        UNROLL for (int i = 0; i < 6; i++) first[i] = k * w[i];
        first[0] = first[0] - scalar(1);
        const real inverse = inverse_root(m * m + square(c[0])), scale = k * inverse;
        UNROLL for (int row = 0; row < 2; row++) {
            const real a = scale * w[2 + 2 * row], b = scale * w[3 + 2 * row];
            UNROLL for (int j = 0; j < 3; j++) {
                r[row][2 * j] = a * w[2 * j] + b * w[2 * j + 1];
                r[row][2 * j + 1] = a * w[2 * j + 1] - b * w[2 * j];
            }
            r[row][2 + 2 * row] = r[row][2 + 2 * row] - m * inverse;
            r[row][3 + 2 * row] = r[row][3 + 2 * row] + c[0] * inverse;
        }
    }
};
