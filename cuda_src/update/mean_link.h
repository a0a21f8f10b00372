// The mean of a link in the distribution exp(weight Re Tr U s^dagger), given all other links (multihit: Parisi,
// Petronzio and Rapuano, Phys. Lett. 128B (1983) 418). With J = weight s / 2 the weight is exp(Tr U J^dagger + h.c.).
#pragma once

#include "arch/maths.h"
#include "group/group.h"
#include "update/mean_link_sun.h"

// SU(2): J = k V, and the mean is V I_2(4 k) / I_1(4 k).
//
// SU(3): with X = Tr J J^dagger, 2 Y = X^2 - Tr (J J^dagger)^2, Z = |det J|^2 and D = 2 Re det J, the integral over the
// group is (de Forcrand and Roiesnel, Phys. Lett. 151B (1985) 77; from the series of Eriksson, Svartholm and
// Skagerstam, J. Math. Phys. 22 (1981) 2276)
//   2 times the contour integral of exp(D x) f_1(1/x + X + Y x + Z x^2) dx / (2 pi i) around 0,
// where f_n(w) = I_n(2 sqrt w) / w^(n/2) = sum over k of w^k / (k! (k+n)!), so that f_1' = f_2. The mean is its
// logarithmic derivative by J^dagger.
//
// On the circle |x| = 1 / (X + 1), close to the saddle point, the sum over equidistant points converges exponentially.

// The largest terms of f_1 and f_2 are those of k = sqrt |w|, and those of the exponential series of y are of k = |y|.
// For SU(3) |w| is at most 1 + 2.38 X, because Y <= X^2 / 3 and Z <= X^3 / 27.
constexpr int FEWEST_TERMS = REAL_BYTES == 4 ? 8 : 16;

// SU(N) for other N.
template <int N> struct MeanLink {
    template <class G> static INLINE typename G::Matrix of(const typename G::Matrix& s, real weight) {
        return GeneralMeanLink<G>::of(s, weight);
    }
};

constexpr scalar TERMS_BEYOND = scalar(REAL_BYTES == 4 ? 2.2 : 2.6);

// The number of terms that are needed for all lanes, if the largest one is that of k = `largest`.
INLINE int terms_for(real largest) { return FEWEST_TERMS + (int)(TERMS_BEYOND * lane_max(largest)); }

// Return the first term that is left out, or 0 in lanes that need term number k, so that sums do not depend on which
// sites share a register.
INLINE real needed(int k, real largest, real term) {
    if (!KEEPS_CONVERGED) return term;
    return select(TERMS_BEYOND * largest >= broadcast((scalar)(k + 1 - FEWEST_TERMS)), term, broadcast(0));
}

template <> struct MeanLink<2> {
    template <class G> static INLINE typename G::Matrix of(const typename G::Matrix& s, real weight) {
        const typename G::Matrix j = G::scaled(s, scalar(0.5) * weight);
        const real w = scalar(4) * j.norm2();
        const real size = root(w);
        const int terms = terms_for(size);
        real term = broadcast(1), f1 = broadcast(0), f2 = broadcast(0);
        ROLLED
        for (int k = 0; k < terms; k++) {
            f1 = f1 + term;
            f2 = f2 + term * (scalar(1) / (scalar)(k + 2));
            term = needed(k + 1, size, term * w * (scalar(1) / ((scalar)(k + 1) * (scalar)(k + 2))));
        }
        return G::scaled(j, scalar(2) * f2 / f1);
    }
};

template <> struct MeanLink<3> {
    static constexpr int POINTS = REAL_BYTES == 4 ? 16 : 32;  // on the upper half of the circle

    template <class G> static INLINE typename G::Matrix of(const typename G::Matrix& s, real weight) {
        typedef typename G::Matrix M;
        const M j = G::scaled(s, scalar(0.5) * weight), cofactors = G::cofactors(j);
        const complex det = G::determinant(j, cofactors);
        const real x = G::overlap(j, j), y = G::overlap(cofactors, cofactors);
        const real z = square(det.re) + square(det.im), d = det.re + det.re;
        const real radius = scalar(1) / (x + scalar(1)), bound = x + x + scalar(1) + x * scalar(0.38);
        const real size = root(bound), other_size = larger(d, -d) * radius;
        const int terms = terms_for(size), powers = terms_for(other_size);

        real sum = broadcast(0), of_x = sum, of_y = sum, of_z = sum, of_d = sum;
        ROLLED
        for (int point = 0; point < POINTS; point++) {
            const scalar turn = ((scalar)point + scalar(0.5)) / (scalar)POINTS - scalar(0.5);  // angle / pi - 1/2
            const real cosine = -sin_pi(broadcast(turn)), sine = cos_pi(broadcast(turn));
            const complex at = radius * complex{cosine, sine}, at2 = at * at;
            const real inverse = x + scalar(1);
            const complex w = {inverse * cosine + x + y * at.re + z * at2.re, y * at.im + z * at2.im - inverse * sine};
            complex term = {broadcast(1), broadcast(0)}, f1 = {broadcast(0), broadcast(0)}, f2 = f1;
            ROLLED
            for (int k = 0; k < terms; k++) {
                const scalar next = scalar(1) / (scalar)(k + 2), both = next / (scalar)(k + 1);
                f1 = f1 + term;
                f2 = f2 + next * term;
                const complex product = term * w;
                term = {needed(k + 1, size, product.re * both), needed(k + 1, size, product.im * both)};
            }
            const complex exponent = d * at;
            complex factor = {broadcast(0), broadcast(0)};
            term = {broadcast(1), broadcast(0)};
            ROLLED
            for (int k = 0; k < powers; k++) {
                factor = factor + term;
                const complex product = term * exponent;
                const scalar next = scalar(1) / (scalar)(k + 1);
                term = {needed(k + 1, other_size, product.re * next), needed(k + 1, other_size, product.im * next)};
            }
            // dx is proportional to x times the step of the angle.
            const complex g1 = at * factor * f1, g2 = at * factor * f2;
            sum = sum + g1.re;
            of_x = of_x + g2.re;
            of_y = of_y + (at * g2).re;
            of_z = of_z + (at2 * g2).re;
            of_d = of_d + (at * g1).re;
        }
        // X, Y, Z and D differentiated by J^dagger: J, X J - J J^dagger J, det J adj(J^dagger) and adj(J^dagger).
        const real share = scalar(1) / sum;
        const real by_j = (of_x + x * of_y) * share, by_cubic = -of_y * share;
        const complex by_cofactor = {(of_z * det.re + of_d) * share, of_z * det.im * share};
        const M cubic = G::product(G::product(j, G::adjoint(j)), j);
        M mean = G::scaled(j, by_j);
        G::add(mean, G::scaled(cubic, by_cubic));
        G::add(mean, G::scaled(cofactors, by_cofactor));
        return mean;
    }
};
