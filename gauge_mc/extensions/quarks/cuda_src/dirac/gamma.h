// Gamma matrices in the DeGrand-Rossi basis, the projections 1 + s gamma_mu with s = 1 or -1, and half spinors.
//
// A row of gamma_mu has one element that is not 0, i^power in the column `column`:
//
//   gamma_x = [0 0 0 i]   gamma_y = [0 0 0 -1]   gamma_z = [0 0 i 0]    gamma_t = [0 0 1 0]
//             [0 0 i 0]             [0 0 1  0]             [0 0 0 -i]             [0 0 0 1]
//             [0 -i 0 0]            [0 1 0  0]             [-i 0 0 0]             [1 0 0 0]
//             [-i 0 0 0]            [-1 0 0 0]             [0 i 0 0]              [0 1 0 0]
//
// gamma_5 = gamma_x gamma_y gamma_z gamma_t = diag(1, 1, -1, -1). Since gamma_mu exchanges the upper two with the lower
// two components, the lower ones of (1 + s gamma_mu) psi follow from the upper ones, a half spinor h:
//   (1 + s gamma_mu) psi = (h, s gamma_mu h).
#pragma once

#include "group/group.h"

constexpr int SPINS = 4;
constexpr int COLOUR_REALS = 2 * GROUP::N;               // reals of a colour vector
constexpr int SPINOR_REALS = SPINS * COLOUR_REALS;
constexpr int HALF_SPINOR_REALS = 2 * COLOUR_REALS;      // [spin][colour][re, im]

// The place of the real part of a component of a spinor, followed by the imaginary part: [colour][spin][re, im]. Colour
// by colour, a projection needs few registers for what it has loaded.
INLINE constexpr int component(int spin, int colour) { return 2 * (colour * SPINS + spin); }

struct Spinor {
    real c[SPINOR_REALS];
};
struct HalfSpinor {
    real c[HALF_SPINOR_REALS];
};

INLINE constexpr int gamma_column(int mu, int spin) {
    return mu == 0 || mu == 1 ? 3 - spin : spin ^ 2;
}
INLINE constexpr int gamma_power(int mu, int spin) {
    if (mu == 0) return spin < 2 ? 1 : 3;
    if (mu == 1) return spin == 0 || spin == 3 ? 2 : 0;
    if (mu == 2) return spin == 0 || spin == 3 ? 1 : 3;
    return 0;
}

// y + s i^power x, element by element.
template <class S> INLINE real plus_re(int power, S s, real y, real re, real im) {
    return power == 0 ? y + s * re : power == 1 ? y - s * im : power == 2 ? y - s * re : y + s * im;
}
template <class S> INLINE real plus_im(int power, S s, real y, real re, real im) {
    return power == 0 ? y + s * im : power == 1 ? y + s * re : power == 2 ? y - s * im : y - s * re;
}

// The upper components of (1 + s gamma_mu) psi.
template <int MU> INLINE HalfSpinor project(const Spinor& psi, scalar s) {
    HalfSpinor h;
    UNROLL for (int spin = 0; spin < 2; spin++) {
        const int other = gamma_column(MU, spin), power = gamma_power(MU, spin);
        UNROLL for (int a = 0; a < GROUP::N; a++) {
            const int to = spin * COLOUR_REALS + 2 * a, here = component(spin, a), there = component(other, a);
            const real re = psi.c[there], im = psi.c[there + 1];
            h.c[to] = plus_re(power, s, psi.c[here], re, im);
            h.c[to + 1] = plus_im(power, s, psi.c[here + 1], re, im);
        }
    }
    return h;
}

// sum += factor (h, s gamma_mu h).
template <int MU> INLINE void add_projected(Spinor& sum, const HalfSpinor& h, scalar s, real factor) {
    const real signed_factor = s * factor;
    UNROLL for (int spin = 0; spin < SPINS; spin++) {
        const int from = (spin < 2 ? spin : gamma_column(MU, spin)) * COLOUR_REALS, power = gamma_power(MU, spin);
        UNROLL for (int a = 0; a < GROUP::N; a++) {
            const int to = component(spin, a);
            const real re = h.c[from + 2 * a], im = h.c[from + 2 * a + 1];
            sum.c[to] = spin < 2 ? sum.c[to] + factor * re : plus_re(power, signed_factor, sum.c[to], re, im);
            sum.c[to + 1] = spin < 2 ? sum.c[to + 1] + factor * im : plus_im(power, signed_factor, sum.c[to + 1], re, im);
        }
    }
}

// u h or u^dagger h for both spins, given the entries [row][column][re, im] of u.
template <bool ADJOINT> INLINE HalfSpinor transported(const real (&u)[2 * GROUP::N * GROUP::N], const HalfSpinor& h) {
    HalfSpinor y;
    UNROLL for (int spin = 0; spin < 2; spin++) {
        const int at = spin * COLOUR_REALS;
        UNROLL for (int a = 0; a < GROUP::N; a++) {
            real re = broadcast(0), im = broadcast(0);
            UNROLL for (int b = 0; b < GROUP::N; b++) {
                const int entry = ADJOINT ? 2 * (b * GROUP::N + a) : 2 * (a * GROUP::N + b);
                const real p = u[entry], q = u[entry + 1], r = h.c[at + 2 * b], s = h.c[at + 2 * b + 1];
                re = b == 0 ? p * r : re + p * r;
                im = b == 0 ? p * s : im + p * s;
                re = ADJOINT ? re + q * s : re - q * s;
                im = ADJOINT ? im - q * r : im + q * r;
            }
            y.c[at + 2 * a] = re, y.c[at + 2 * a + 1] = im;
        }
    }
    return y;
}
