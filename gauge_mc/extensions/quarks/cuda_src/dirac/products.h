// Linear combinations of spinors, and scalar products, as values of sum kernels: Re and Im of <a, b> = sum of a^* b, and
// <b, b>. A launch treats all vectors of fields on one slab: they are the replicas of its geometry.
#pragma once

#include "dirac/spinors.h"

constexpr int PRODUCTS = 3;

constexpr int MOST_VECTORS = 16;                    // vectors that a launch with factors can treat
constexpr int FACTOR_REALS = 2 * MOST_VECTORS;     // complex factors of all vectors
constexpr int MOST_COMBINED = 96;                    // vectors of a basis that a launch can combine
constexpr int COMBINED_REALS = 2 * MOST_COMBINED;  // their complex factors

struct Factor {
    double re, im;
};
// A factor for every vector: those of the arguments, or others in the memory of the device.
struct Factors {
    double own[FACTOR_REALS];
    const double* found;  // if not null, they are these
};
INLINE Factor factor_of(const Factors& factors, const Site& s) {
    double factor[2];
    read_either(factors.found, factors.own, 2 * s.replica, factor);
    return {factor[0], factor[1]};
}
// Whether a launch does nothing, because work that was to follow it has to wait for the host.
INLINE bool is_idle(const int* halted) { return halted && *halted; }

INLINE Spinor load_vector(const Spinors& f, const Geometry& g, const Site& s) {
    Spinor psi;
    STORAGE::load(g, spinor_block(f, s.t, s.parity, s.replica), s.slot, psi.c);
    return psi;
}
INLINE void store_vector(const Spinors& f, const Geometry& g, const Site& s, const Spinor& psi) {
    STORAGE::store(g, spinor_block(f, s.t, s.parity, s.replica), s.slot, psi.c);
}

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
INLINE void add_multiple(Spinor& y, const Factor& factor, const Spinor& x) {
    const scalar re = (scalar)factor.re, im = (scalar)factor.im;
    UNROLL for (int i = 0; i < SPINOR_REALS; i += 2) {
        y.c[i] = y.c[i] + re * x.c[i] - im * x.c[i + 1];
        y.c[i + 1] = y.c[i + 1] + re * x.c[i + 1] + im * x.c[i];
    }
}
