// Hermitian matrices that act on the two spin components of one chirality and on the colours, as fields: for each
// chirality, upper components first, [t][parity][chirality], and then a block of STORAGE.
//
// Row and column i = spin N + colour. Stored are the diagonal, and then the rows of the triangle below it as [re, im].
#pragma once

#include "dirac/spinors.h"

constexpr int BLOCK_ROWS = 2 * GROUP::N;
constexpr int BLOCK_REALS = BLOCK_ROWS * BLOCK_ROWS;

INLINE constexpr int below(int row, int column) { return BLOCK_ROWS + row * (row - 1) + 2 * column; }

INLINE char* chiral_block(const void* data, const Geometry& g, const Site& s, int chirality) {
    const long long bytes = (long long)STORAGE::bytes(BLOCK_REALS) * LANES * g.slots;
    return (char*)data + ((slice_in_memory(g, s) * 2 + s.parity) * 2 + chirality) * bytes;
}

// psi -> H psi.
INLINE void multiply_blocks(const void* data, const Geometry& g, const Site& s, Spinor& psi) {
    UNROLL for (int chirality = 0; chirality < 2; chirality++) {
        real h[BLOCK_REALS], x[2 * BLOCK_ROWS], y[2 * BLOCK_ROWS];
        STORAGE::load(g, chiral_block(data, g, s, chirality), s.slot, h);
        UNROLL for (int i = 0; i < BLOCK_ROWS; i++) {
            const int at = component(2 * chirality + i / GROUP::N, i % GROUP::N);
            x[2 * i] = psi.c[at], x[2 * i + 1] = psi.c[at + 1];
            y[2 * i] = h[i] * x[2 * i], y[2 * i + 1] = h[i] * x[2 * i + 1];
        }
        UNROLL for (int i = 1; i < BLOCK_ROWS; i++)
            UNROLL for (int j = 0; j < i; j++) {
                const real re = h[below(i, j)], im = h[below(i, j) + 1];
                y[2 * i] = y[2 * i] + re * x[2 * j] - im * x[2 * j + 1];
                y[2 * i + 1] = y[2 * i + 1] + re * x[2 * j + 1] + im * x[2 * j];
                y[2 * j] = y[2 * j] + re * x[2 * i] + im * x[2 * i + 1];
                y[2 * j + 1] = y[2 * j + 1] + re * x[2 * i + 1] - im * x[2 * i];
            }
        UNROLL for (int i = 0; i < BLOCK_ROWS; i++) {
            const int at = component(2 * chirality + i / GROUP::N, i % GROUP::N);
            psi.c[at] = y[2 * i], psi.c[at + 1] = y[2 * i + 1];
        }
    }
}
