// The mean of a link of SU(N) in the distribution exp(Tr U J^dagger + h.c.), for any N.
//
// With the eigenvalues x_i of J J^dagger the integral over the group is (Brower, Rossi and Tan, Phys. Rev. D 23 (1981)
// 942; Leutwyler and Smilga, Phys. Rev. D 46 (1992) 5607)
//   Z = sum over all integers q of (det J)^q F_|q|(x), with (det J^*)^|q| for q < 0,
//   F_q = det [P_k(x d/dx) f_q(x_i)] / prod_(i<k) (x_k - x_i), i, k = 0 ... N - 1,
// where f_q(x) = sum over n of x^n / (n! (n+q)!) and P_k is any polynomial of degree k with the leading coefficient 1:
// x^k d^k/dx^k f_q = x^k f_(q+k), and other polynomials combine these rows of the determinant. The mean is the
// derivative of log Z by J^*. With V J J^dagger V^dagger = diag(x) and R = V J it is
//   V^dagger diag(m) R,  m_i = 1/Z sum over q of [(det J)^q dF_|q|/dx_i] + 1/(Z x_i) sum over q > 0 of q (det J^*)^q F_q.
//
// Equal or nearly equal x_i do no harm, because the determinant over the product of differences is the determinant of
// divided differences: column i is that of x_0, ..., x_i, in which x^n becomes h_(n-i)(x_0, ..., x_i), the sum of all
// products of n - i of these x. All terms are positive and computed by h_n(x_0 ... x_i) = h_n(x_0 ... x_(i-1)) +
// x_i h_(n-1)(x_0 ... x_i). Its derivative by x_j is h_(n-1)(x_0 ... x_i, x_j). The x_i ascend, so that each column is
// dominated by another one, and P_k(n) = (n - c)^k, where c is close to the largest terms: then the elimination loses
// few digits. It is always in double precision, and a scale is taken out: y = x / rho^2 has the average 1.
#pragma once

#include "arch/maths.h"
#include "group/complex.h"

constexpr int FEWEST_CHARGES = 4;
template <int N> constexpr int FEWEST_SERIES_TERMS = 16 + 2 * N;

template <int N> struct MeanFactors {
    double_real re[N], im[N];  // m_i rho^2
    double_real y[N], rho, det_re, det_im;  // y_i, rho, and det J / rho^N
    double_real first, centre;  // q! rho^q times the scale of all F, and c
    double_real moments[N][N];  // [k][i], then the inverse
    double_real z;
    int terms;
    real longest;  // the last of the square roots

    // `s` are the square roots of x, in ascending order.
    INLINE void compute(const real (&s)[N]) {
        real sum = broadcast(0);
        UNROLL for (int i = 0; i < N; i++) sum = sum + s[i];
        const real average = sum * scalar(1.0 / N);
        // The largest terms are those of n = s_(N-1), and F_q falls about as exp(-(q N)^2 / (4 sum)).
        longest = s[N - 1];
        terms = FEWEST_SERIES_TERMS<N> + (int)(scalar(2.6) * lane_max(longest));
        const real extra = root(scalar(REAL_BYTES == 4 ? 120 : 296) * sum) / scalar(N);
        const int charges = FEWEST_CHARGES + (int)lane_max(extra);

        const double_real zero = to_double(broadcast(0));
        double_real cofactor_re = zero, cofactor_im = zero, power_re = zero + 1.0, power_im = zero;
        UNROLL for (int i = 0; i < N; i++) re[i] = im[i] = zero;
        z = zero;
#if STRICT
        first = power_of_two(to_double(longest) * (-2 / 0.693147180559945309));
#else
        first = to_double(lanewise(s[N - 1] * scalar(-2), [](scalar t) { return exponential(t); }));
#endif
        ROLLED
        for (int q = 0; q < charges; q++) {
            const real half = broadcast(scalar(0.5) * (scalar)q);
            centre = to_double(root(square(half) + square(average)) - half);
            add_up(q);
            // Charges that other lanes need change nothing.
            const mask counts = extra >= broadcast((scalar)(q + 1 - FEWEST_CHARGES));
            const double_real determinant = invert(), f = needed(counts, determinant);
            const double_real weight = (q ? power_re * 2.0 : power_re);
            add_derivatives(q, weight * f, counts);
            z = z + weight * f;
            cofactor_re = cofactor_re + power_re * f * (double)q;
            cofactor_im = cofactor_im - power_im * f * (double)q;
            const double_real last = power_re;
            power_re = last * det_re - power_im * det_im;
            power_im = last * det_im + power_im * det_re;
            first = first * rho * (1.0 / (q + 1));
        }
        ROLLED
        for (int i = 0; i < N; i++) {
            const double_real share = 1.0 / (z * (y[i] + 1e-200));
            re[i] = re[i] / z + cofactor_re * share;
            im[i] = cofactor_im * share;
        }
    }

  private:
    // Return 0 in lanes in which a term does not count, so that sums do not depend on which sites share a register.
    static INLINE double_real needed(const mask& counts, const double_real& term) {
        return KEEPS_CONVERGED ? select_double(counts, term, to_double(broadcast(0))) : term;
    }

    // Call use(term times powers of n - c, h_(n-i), its derivatives [i][j] by y_j, if they are wanted) for every n.
    template <bool DERIVATIVES, class Use> INLINE void series(int q, Use use) {
        const double_real zero = to_double(broadcast(0));
        double_real term = first, h[N], derivative[N][N], power[N];
        ROLLED for (int i = 0; i < N; i++) {
            h[i] = zero;
            if constexpr (DERIVATIVES) {
                ROLLED for (int j = 0; j <= i; j++) derivative[i][j] = zero;
            }
        }
        h[0] = zero + 1.0;
        const double_real rho2 = rho * rho;
        ROLLED
        for (int n = 0; n < terms; n++) {
            power[0] = term;
            ROLLED for (int k = 1; k < N; k++) power[k] = power[k - 1] * ((double)n - centre);
            use(power, h, derivative);
            ROLLED
            for (int i = N - 1; i >= 0; i--) {
                if constexpr (DERIVATIVES) {
                    ROLLED for (int j = 0; j < i; j++) derivative[i][j] = derivative[i - 1][j] + y[i] * derivative[i][j];
                    derivative[i][i] = h[i] + y[i] * derivative[i][i];
                }
                h[i] = i ? h[i - 1] + y[i] * h[i] : y[i] * h[i];
            }
            const mask counts = scalar(2.6) * longest >= broadcast((scalar)(n + 2 - FEWEST_SERIES_TERMS<N>));
            term = needed(counts, term * rho2 * (1.0 / ((double)(n + 1) * (double)(n + 1 + q))));
        }
    }

    INLINE void add_up(int q) {
        const double_real zero = to_double(broadcast(0));
        ROLLED for (int i = 0; i < N * N; i++) moments[i / N][i % N] = zero;
        series<false>(q, [&](const auto& power, const auto& h, const auto&) {
            ROLLED for (int k = 0; k < N; k++)
                UNROLL for (int i = 0; i < N; i++) moments[k][i] = moments[k][i] + power[k] * h[i];
        });
    }

    // Gauss and Jordan without pivoting, since all leading minors are positive: they are those F of fewer x. Returns
    // the determinant.
    INLINE double_real invert() {
        double_real determinant = to_double(broadcast(1));
        ROLLED
        for (int k = 0; k < N; k++) {
            const double_real pivot = moments[k][k], inverse = 1.0 / pivot;
            determinant = determinant * pivot;
            moments[k][k] = to_double(broadcast(1));
            UNROLL for (int i = 0; i < N; i++) moments[k][i] = moments[k][i] * inverse;
            ROLLED
            for (int j = 0; j < N; j++) {
                if (j == k) continue;
                const double_real factor = moments[j][k];
                moments[j][k] = to_double(broadcast(0));
                UNROLL for (int i = 0; i < N; i++) moments[j][i] = moments[j][i] - factor * moments[k][i];
            }
        }
        return determinant;
    }

    // The derivative of the logarithm of the determinant is the trace of the inverse and the derivatives.
    INLINE void add_derivatives(int q, const double_real& weight, const mask& counts) {
        series<true>(q, [&](const auto& power, const auto&, const auto& derivative) {
            ROLLED
            for (int i = 0; i < N; i++) {
                double_real share = moments[i][0] * power[0];
                UNROLL for (int k = 1; k < N; k++) share = share + moments[i][k] * power[k];
                share = needed(counts, share * weight);
                ROLLED for (int j = 0; j <= i; j++) re[j] = re[j] + share * derivative[i][j];
            }
        });
    }
};

// The mean by the factors above; a friend of the group.
template <class G> struct GeneralMeanLink {
    static constexpr int N = G::N;
    typedef typename G::Row Row;
    typedef typename G::Matrix Matrix;

    // The mean in the distribution exp(weight Re Tr U s^dagger).
    static LONG_CODE Matrix of(const Matrix& s, const real& weight) {
        Matrix r = s, v = G::one(), triangle = s;
        make_rows_orthogonal(r, v);
        const complex determinant = G::template eliminate<false>(triangle, triangle);
        const scalar tiny = scalar(REAL_BYTES == 4 ? 1e-30 : 1e-200);
        const real size = root(G::overlap(s, s) * scalar(1.0 / N) + tiny), half = scalar(0.5) * weight;

        MeanFactors<N> factors;
        const double_real inverse = 1.0 / to_double(size);
        factors.rho = to_double(half * size);
        factors.det_re = to_double(determinant.re), factors.det_im = to_double(determinant.im);
        real lengths[N];
        ROLLED
        for (int i = 0; i < N; i++) {
            const real length2 = G::norm2(r.row[i]);
            lengths[i] = half * root(length2);
            factors.y[i] = to_double(length2) * inverse * inverse;
            factors.det_re = factors.det_re * inverse, factors.det_im = factors.det_im * inverse;
        }
        factors.compute(lengths);

        const double_real unit = to_double(half) / (factors.rho * factors.rho);
        ROLLED
        for (int i = 0; i < N; i++) {
            const complex factor = {from_double(factors.re[i] * unit), from_double(factors.im[i] * unit)};
            r.row[i] = G::scaled(r.row[i], factor);
        }
        return G::adjoint_times(v, r);
    }

  private:
    // Rotate the rows of r, and those of v, until the rows of r are orthogonal, with ascending norms (one-sided Jacobi
    // iteration: Hestenes, J. SIAM 6 (1958) 51).
    static INLINE void make_rows_orthogonal(Matrix& r, Matrix& v) {
        const scalar tolerance = scalar(REAL_BYTES == 4 ? 1e-13 : 1e-30), tiny = scalar(REAL_BYTES == 4 ? 1e-37 : 1e-300);
        mask going = everywhere(true);
        ROLLED
        for (int sweep = 0; sweep < 12; sweep++) {
            const Matrix r_before = r, v_before = v;
            mask rotated = everywhere(false);
            ROLLED for (int i = 0; i < N - 1; i++)
                ROLLED for (int j = i + 1; j < N; j++) {
                    const mask exchange = G::norm2(r.row[i]) > G::norm2(r.row[j]);
                    G::exchange_rows(exchange, r.row[i], r.row[j]);
                    G::exchange_rows(exchange, v.row[i], v.row[j]);
                    const real small = G::norm2(r.row[i]), large = G::norm2(r.row[j]);
                    const complex overlap = G::overlap(r.row[i], r.row[j]);
                    const real overlap2 = G::norm2(overlap), half = scalar(0.5) * (large - small);
                    const real share = scalar(1) / (half + root(square(half) + overlap2) + tiny);
                    const complex tangent = share * overlap;
                    const real cosine = inverse_root(scalar(1) + G::norm2(tangent));
                    rotate_rows(r.row[i], r.row[j], tangent, cosine);
                    rotate_rows(v.row[i], v.row[j], tangent, cosine);
                    rotated = rotated | (overlap2 > tolerance * small * large);
                }
            if (KEEPS_CONVERGED) {
                r = select_lanes(going, r, r_before);
                v = select_lanes(going, v, v_before);
            }
            going = still(going, rotated);
            if (!any_lane(going)) break;
        }
    }

    static INLINE void rotate_rows(Row& a, Row& b, const complex& tangent, const real& cosine) {
        const Row before = a;
        G::subtract(a, tangent, b);
        G::subtract(b, {-tangent.re, tangent.im}, before);
        a = G::scaled(a, cosine), b = G::scaled(b, cosine);
    }
};
