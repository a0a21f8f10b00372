// Antihermitian matrices in colour for the six planes of a site, as a field: [t][parity][plane], and then a block of
// STORAGE.
//
// Stored are the imaginary parts of the diagonal, and then the rows of the triangle below it as [re, im]; the number of
// reals is even, as blocks of double precision demand.
#pragma once

#include "dirac/storage.h"
#include "group/group.h"

constexpr int PLANES = 6;
constexpr int PLANE_REALS = (GROUP::N * GROUP::N + 1) / 2 * 2;

INLINE constexpr int plane_number(int mu, int nu) { return nu < mu ? plane_number(nu, mu) : mu * (5 - mu) / 2 + nu - 1; }
INLINE constexpr int below_diagonal(int row, int column) { return GROUP::N + row * (row - 1) + 2 * column; }

INLINE char* plane_block(const void* data, const Geometry& g, int slice, int parity, int plane) {
    const long long bytes = (long long)STORAGE::bytes(PLANE_REALS) * LANES * g.slots;
    return (char*)data + ((slice * 2 + parity) * PLANES + plane) * bytes;
}

// All entries of a matrix, [row][column][re, im].
INLINE void expand_antihermitian(const real (&c)[PLANE_REALS], real (&e)[2 * GROUP::N * GROUP::N]) {
    constexpr int N = GROUP::N;
    UNROLL for (int i = 0; i < N; i++) {
        e[2 * (i * N + i)] = broadcast(0), e[2 * (i * N + i) + 1] = c[i];
        UNROLL for (int j = 0; j < i; j++) {
            const real re = c[below_diagonal(i, j)], im = c[below_diagonal(i, j) + 1];
            e[2 * (i * N + j)] = re, e[2 * (i * N + j) + 1] = im;
            e[2 * (j * N + i)] = -re, e[2 * (j * N + i) + 1] = im;
        }
    }
}

// The matrix as one of the group's code. For SU(2) that has no part proportional to the unit matrix, which is left out.
INLINE GROUP::Matrix antihermitian(const real (&c)[PLANE_REALS]) {
    real m[GROUP::MATRIX_COMPONENTS];
    if constexpr (GROUP::N == 2) {
        m[0] = broadcast(0), m[1] = c[3], m[2] = -c[2], m[3] = scalar(0.5) * (c[0] - c[1]);
    } else {
        real e[2 * GROUP::N * GROUP::N];
        expand_antihermitian(c, e);
        UNROLL for (int i = 0; i < GROUP::MATRIX_COMPONENTS; i++)
            m[i] = i < 2 * GROUP::N * GROUP::N ? e[i] : broadcast(0);
    }
    return GROUP::unpack(m);
}
