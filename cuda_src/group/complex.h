// Complex numbers.
#pragma once

#include "arch/arch.h"

struct complex {
    real re, im;
};

INLINE complex operator+(const complex& a, const complex& b) { return {a.re + b.re, a.im + b.im}; }
INLINE complex operator-(const complex& a, const complex& b) { return {a.re - b.re, a.im - b.im}; }
INLINE complex operator*(const complex& a, const complex& b) {
    return {fused_minus(a.im, b.im, a.re * b.re), fused(a.im, b.re, a.re * b.im)};
}
INLINE complex conj(const complex& a) { return {a.re, -a.im}; }
// A real factor, one for all lanes or one per lane.
template <class Factor> INLINE complex operator*(const Factor& s, const complex& a) { return {s * a.re, s * a.im}; }
// s += a b and s += a b^*
INLINE void add_product(complex& s, const complex& a, const complex& b) {
    s.re = fused_minus(a.im, b.im, fused(a.re, b.re, s.re));
    s.im = fused(a.im, b.re, fused(a.re, b.im, s.im));
}
INLINE void add_product_conj(complex& s, const complex& a, const complex& b) {
    s.re = fused(a.im, b.im, fused(a.re, b.re, s.re));
    s.im = fused_minus(a.re, b.im, fused(a.im, b.re, s.im));
}
