// A matrix of spin and colour of one chirality at a site, with row and column spin N + colour, and what is computed of it.
#pragma once

#include "dirac/blocks.h"

struct Block {
    real re[BLOCK_ROWS][BLOCK_ROWS], im[BLOCK_ROWS][BLOCK_ROWS];
};

INLINE Block unit_block() {
    Block one;
    for (int i = 0; i < BLOCK_ROWS; i++)
        for (int j = 0; j < BLOCK_ROWS; j++) one.re[i][j] = broadcast(i == j), one.im[i][j] = broadcast(0);
    return one;
}

// Load a hermitian matrix from a field.
INLINE Block load_block(const void* data, const Geometry& g, const Site& site, int chirality) {
    real h[BLOCK_REALS];
    STORAGE::load(g, chiral_block(data, g, site, chirality), site.slot, h);
    Block m;
    for (int i = 0; i < BLOCK_ROWS; i++) {
        m.re[i][i] = h[i], m.im[i][i] = broadcast(0);
        for (int j = 0; j < i; j++) {
            m.re[i][j] = m.re[j][i] = h[below(i, j)];
            m.im[i][j] = h[below(i, j) + 1], m.im[j][i] = -h[below(i, j) + 1];
        }
    }
    return m;
}

// Store the hermitian part of a matrix.
INLINE void store_block(void* data, const Geometry& g, const Site& site, int chirality, const Block& m) {
    real h[BLOCK_REALS];
    UNROLL for (int i = 0; i < BLOCK_ROWS; i++) {
        h[i] = m.re[i][i];
        UNROLL for (int j = 0; j < i; j++) {
            h[below(i, j)] = scalar(0.5) * (m.re[i][j] + m.re[j][i]);
            h[below(i, j) + 1] = scalar(0.5) * (m.im[i][j] - m.im[j][i]);
        }
    }
    STORAGE::store(g, chiral_block(data, g, site, chirality), site.slot, h);
}

INLINE Block product(const Block& a, const Block& b) {
    Block p;
    ROLLED
    for (int i = 0; i < BLOCK_ROWS; i++)
        for (int j = 0; j < BLOCK_ROWS; j++) {
            real re = broadcast(0), im = broadcast(0);
            for (int k = 0; k < BLOCK_ROWS; k++) {
                re = re + a.re[i][k] * b.re[k][j] - a.im[i][k] * b.im[k][j];
                im = im + a.re[i][k] * b.im[k][j] + a.im[i][k] * b.re[k][j];
            }
            p.re[i][j] = re, p.im[i][j] = im;
        }
    return p;
}

// a^2 + mass^2.
INLINE Block square_plus(const Block& a, scalar mass) {
    Block square = product(a, a);
    for (int i = 0; i < BLOCK_ROWS; i++) square.re[i][i] = square.re[i][i] + mass * mass;
    return square;
}

// The inverse of a positive matrix by Gauss-Jordan elimination, which needs no pivoting.
INLINE Block inverse_of_positive(Block a) {
    ROLLED
    for (int k = 0; k < BLOCK_ROWS; k++) {
        const real pivot = scalar(1) / a.re[k][k];
        a.re[k][k] = broadcast(1), a.im[k][k] = broadcast(0);
        for (int j = 0; j < BLOCK_ROWS; j++) a.re[k][j] = a.re[k][j] * pivot, a.im[k][j] = a.im[k][j] * pivot;
        for (int i = 0; i < BLOCK_ROWS; i++) {
            if (i == k) continue;
            const real re = a.re[i][k], im = a.im[i][k];
            a.re[i][k] = broadcast(0), a.im[i][k] = broadcast(0);
            for (int j = 0; j < BLOCK_ROWS; j++) {
                a.re[i][j] = a.re[i][j] - (re * a.re[k][j] - im * a.im[k][j]);
                a.im[i][j] = a.im[i][j] - (re * a.im[k][j] + im * a.re[k][j]);
            }
        }
    }
    return a;
}
