// Momenta of hybrid Monte Carlo: for every link an element P = i sum over a of p_a T_a of the algebra of SU(N), with
// Tr T_a T_b = delta_ab / 2 and normal p_a. The values of a site are its kinetic energy, -Tr P^2 = sum of p_a^2 / 2, and a
// uniform number for accepting the trajectory, which is 0 except at the first site of the lattice.
#include "arch/launch.h"
#include "group/group.h"
#include "random/normal.h"
#include "random/random.h"
#include "update/replicas.h"

constexpr int NUMBERS = GROUP::N * GROUP::N / 2 * 2;  // the dimension N^2 - 1, or one more if that is odd

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::AlgebraField momenta;
    Stream stream;
    const unsigned* keys;  // [replica][KEY_WORDS], or null
    double* sums;
};

INLINE GROUP::Algebra element(const real (&p)[NUMBERS]) {
    constexpr int N = GROUP::N;
    GROUP::Algebra x = {};
    if constexpr (N == 2) {
        UNROLL for (int i = 0; i < 3; i++) x.a[1 + i] = scalar(0.5) * p[i];
    } else {
        // The diagonal T_a are diag(1, ..., 1, -k, 0, ...) / sqrt(2 k (k + 1)) with k ones, k = 1 to N - 1.
        UNROLL for (int k = 1; k < N; k++) {
            const real part = p[k - 1] * (scalar(1) / root(scalar(2 * k * (k + 1))));
            UNROLL for (int i = 0; i < k; i++) x.a[i] = x.a[i] + part;
            if (k < N - 1) x.a[k] = x.a[k] - scalar(k) * part;
        }
        UNROLL for (int i = N - 1; i < N * N - 1; i++) x.a[i] = scalar(0.5) * p[i];
    }
    return x;
}

INLINE void momenta_site(const Arguments& a, const Site& site, real (&values)[2]) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    real energy = broadcast(0), accept[1] = {broadcast(0)};
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        // Besides the momentum at most one number for the acceptance; RANLUX reserves four more.
        RANDOM<NUMBERS + 4> random(REPLICAS::stream(a, site), g, site, mu);
        real p[NUMBERS];
        random.uniforms(p);
        if (mu == 3) random.uniforms(accept);
        random.end();
        to_normal(p);
        const GROUP::Algebra x = element(p);
        a.momenta.store(g, AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu), x);
        energy = energy + GROUP::overlap(x, x);
    }
    values[0] = energy;
    // The number of a site is mapped to (0, 1), because reals can be compared in every lane.
    const word number = site_number(g, site);
    const mask first = uniform_from_31_bits((number | number >> 31) & 0x7fffffffu) < broadcast(0x1p-31);
    values[1] = select(first, accept[0], broadcast(0));
}

SUM_KERNEL(momenta, 2, momenta_site)
