// Scalar products of spinors, as values of sum kernels: Re and Im of <a, b> = sum of a^* b, and <b, b>.
#pragma once

#include "dirac/spinors.h"

constexpr int PRODUCTS = 3;

INLINE void add_products(const Spinor* a, const Spinor& b, real (&values)[PRODUCTS]) {
    UNROLL for (int i = 0; i < SPINOR_REALS; i += 2) {
        const real re = b.c[i], im = b.c[i + 1];
        if (a) {
            values[0] = values[0] + a->c[i] * re + a->c[i + 1] * im;
            values[1] = values[1] + a->c[i] * im - a->c[i + 1] * re;
        }
        values[2] = values[2] + re * re + im * im;
    }
}

// y += (re + i im) x.
INLINE void add_multiple(Spinor& y, const double (&factor)[2], const Spinor& x) {
    const scalar re = (scalar)factor[0], im = (scalar)factor[1];
    UNROLL for (int i = 0; i < SPINOR_REALS; i += 2) {
        y.c[i] = y.c[i] + re * x.c[i] - im * x.c[i + 1];
        y.c[i + 1] = y.c[i + 1] + re * x.c[i + 1] + im * x.c[i];
    }
}
