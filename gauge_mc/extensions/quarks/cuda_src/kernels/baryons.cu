// Sums over sites of the products of propagators of all quarks of a baryon, for one spin of each quark at the source:
//   SU(3): epsilon_abc epsilon_a'b'c' S1[i a, i' a'] Gamma_ij S2[j b, j' b'] S3[k c, k' c'] for k = 0, ..., 3
//   SU(2): epsilon_ab epsilon_a'b' S1[i a, i' a'] Gamma_ij S2[j b, j' b'], the first of the values
// with the sum over i and j. The vectors of a propagator are its columns [i'][a'].
#include "arch/launch.h"
#include "dirac/spinors.h"
#include "dirac/waves.h"

constexpr int VALUES = 8;  // reals per site

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors first, second, third;
    const unsigned* waves;
    double* sums;
    double re[16], im[16];  // Gamma
    int first_spin, second_spin, third_spin;
};

// y += s x z for complex numbers.
INLINE void add_product(scalar s, const real* x, const real* z, real* y) {
    y[0] = y[0] + s * (x[0] * z[0] - x[1] * z[1]);
    y[1] = y[1] + s * (x[0] * z[1] + x[1] * z[0]);
}

// Gamma psi in spin space.
INLINE Spinor gamma_times(const Arguments& a, const Spinor& psi) {
    Spinor y;
    UNROLL for (int i = 0; i < SPINS; i++)
        UNROLL for (int c = 0; c < GROUP::N; c++) {
            real sum[2] = {broadcast(0), broadcast(0)};
            UNROLL for (int j = 0; j < SPINS; j++) {
                const scalar re = (scalar)a.re[i * SPINS + j], im = (scalar)a.im[i * SPINS + j];
                const real p = psi.c[component(j, c)], q = psi.c[component(j, c) + 1];
                sum[0] = sum[0] + re * p - im * q;
                sum[1] = sum[1] + re * q + im * p;
            }
            y.c[component(i, c)] = sum[0], y.c[component(i, c) + 1] = sum[1];
        }
    return y;
}

// epsilon_abc u_ia v_ib for colour c, or epsilon_ab u_ia v_ib for two colours.
INLINE void diquark(const Spinor& u, const Spinor& v, int c, real (&d)[2]) {
    const int a = GROUP::N == 2 ? 0 : (c + 1) % 3, b = GROUP::N == 2 ? 1 : (c + 2) % 3;
    d[0] = broadcast(0), d[1] = broadcast(0);
    UNROLL for (int i = 0; i < SPINS; i++) {
        add_product(1, u.c + component(i, a), v.c + component(i, b), d);
        add_product(-1, u.c + component(i, b), v.c + component(i, a), d);
    }
}

INLINE void baryons_site(const Arguments& a, const Site& site, real (&values)[VALUES]) {
    const Geometry& g = a.geometry;
    constexpr int N = GROUP::N, ORDERS = N == 2 ? 2 : 6;
    real sum[VALUES];
    UNROLL for (int n = 0; n < VALUES; n++) sum[n] = broadcast(0);
    ROLLED
    for (int order = 0; order < ORDERS; order++) {
        // The colours at the source: an even permutation, and the same with the first two exchanged.
        const int third = order >> 1, one = (third + 1) % N, two = (third + 2) % N, odd = order & 1;
        const int p = N == 2 ? odd : (odd ? two : one), q = N == 2 ? 1 - odd : (odd ? one : two);
        const Spinor u = load_spinor(a.first, g, site, a.first_spin * N + p);
        const Spinor v = gamma_times(a, load_spinor(a.second, g, site, a.second_spin * N + q));
        const scalar sign = odd ? -1 : 1;
        if constexpr (N == 2) {
            real d[2];
            diquark(u, v, 0, d);
            UNROLL for (int n = 0; n < 2; n++) sum[n] = sum[n] + sign * d[n];
        } else {
            const Spinor w = load_spinor(a.third, g, site, a.third_spin * N + third);
            UNROLL for (int c = 0; c < N; c++) {
                real d[2];
                diquark(u, v, c, d);
                UNROLL for (int k = 0; k < SPINS; k++) add_product(sign, d, w.c + component(k, c), sum + 2 * k);
            }
        }
    }
    UNROLL for (int n = 0; n < VALUES; n += 2) {
        multiply_by_wave(a.waves, g, site, sum[n], sum[n + 1]);
        values[n] = sum[n], values[n + 1] = sum[n + 1];
    }
}

WIDE_SUM_KERNEL(baryons, VALUES, baryons_site)
