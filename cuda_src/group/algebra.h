// The Lie algebra of the gauge group: traceless antihermitian matrices, given by C real components that fill
// whole packets.
#pragma once

#include "lattice/links.h"

template <int C> struct AlgebraElement {
    real a[C];
};

template <int C> INLINE AlgebraElement<C> operator+(const AlgebraElement<C>& x, const AlgebraElement<C>& y) {
    AlgebraElement<C> sum;
    UNROLL for (int i = 0; i < C; i++) sum.a[i] = x.a[i] + y.a[i];
    return sum;
}
template <int C> INLINE AlgebraElement<C> operator*(scalar s, const AlgebraElement<C>& x) {
    AlgebraElement<C> y;
    UNROLL for (int i = 0; i < C; i++) y.a[i] = s * x.a[i];
    return y;
}

// One element for every link, in the order of a field of links.
template <int C> struct ElementField : Links<C> {
    INLINE AlgebraElement<C> load(const Geometry& g, packet_index first, int crossing = 0) const {
        AlgebraElement<C> x;
        this->read(g, first, crossing, x.a);
        return x;
    }
    INLINE void store(const Geometry& g, packet_index first, const AlgebraElement<C>& x) const {
        this->template write<true>(g, first, x.a);
    }
};

// Number of terms of the Taylor series of exp(x). The first term that is left out is below half the unit
// roundoff, 6.0e-8 or 1.1e-16, for matrices x with a norm of up to 1.4.
constexpr int EXPONENTIAL_TERMS = REAL_BYTES == 4 ? 12 : 20;

// 1 / n! for n <= 21: a table, because nvcc computes the factors of a loop at run time, with divisions.
struct InverseFactorials {
    double of[22];
    INLINE constexpr InverseFactorials() : of() {
        of[0] = 1;
        for (int n = 1; n < 22; n++) of[n] = of[n - 1] / n;
    }
};
INLINE double inverse_factorial(int n) {
    constexpr InverseFactorials inverse;
    return inverse.of[n];
}
