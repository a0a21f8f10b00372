// Forces that pairs of vectors X and Y exert on the momenta: an action that changes by dS = -2 Re X^dagger (dM) Y with the
// links U -> exp(P dt) U has a force that is the traceless antihermitian part of a matrix in colour.
#pragma once

#include "dirac/gamma.h"

constexpr int MOST_PAIRS = 32;  // pairs of vectors that a launch can treat

// The traceless antihermitian part of a matrix, given its entries [row][column][re, im].
template <int C> INLINE GROUP::Algebra traceless_part(const real (&w)[C]) {
    static_assert(C == 2 * GROUP::N * GROUP::N, "all entries of a matrix");
    if constexpr (GROUP::N == 2) {
        const scalar half = scalar(0.5);
        return {{broadcast(0), half * (w[3] + w[5]), half * (w[2] - w[4]), half * (w[1] - w[7])}};
    } else {
        real c[GROUP::MATRIX_COMPONENTS];
        UNROLL for (int i = 0; i < GROUP::MATRIX_COMPONENTS; i++) c[i] = i < C ? w[i] : broadcast(0);
        return GROUP::traceless(GROUP::unpack(c));
    }
}

// v += sum over spins of h k^dagger, a matrix in colour [row][column][re, im].
template <int C> INLINE void add_outer_product(real (&v)[C], const HalfSpinor& h, const HalfSpinor& k) {
    UNROLL for (int spin = 0; spin < 2; spin++)
        UNROLL for (int a = 0; a < GROUP::N; a++)
            UNROLL for (int b = 0; b < GROUP::N; b++) {
                const int row = spin * COLOUR_REALS + 2 * a, column = spin * COLOUR_REALS + 2 * b;
                const int to = 2 * (a * GROUP::N + b);
                v[to] = v[to] + h.c[row] * k.c[column] + h.c[row + 1] * k.c[column + 1];
                v[to + 1] = v[to + 1] + h.c[row + 1] * k.c[column] - h.c[row] * k.c[column + 1];
            }
}
