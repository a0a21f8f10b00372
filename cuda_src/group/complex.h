// Complex numbers.
#pragma once

#include "arch/arch.h"

struct complex {
    real re, im;
};

INLINE complex operator+(const complex& a, const complex& b) { return {a.re + b.re, a.im + b.im}; }
INLINE complex operator-(const complex& a, const complex& b) { return {a.re - b.re, a.im - b.im}; }
INLINE complex operator*(const complex& a, const complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
INLINE complex conj(const complex& a) { return {a.re, -a.im}; }
// s += a b and s += a b^*
INLINE void add_product(complex& s, const complex& a, const complex& b) {
    s.re += a.re * b.re; s.re -= a.im * b.im;
    s.im += a.re * b.im; s.im += a.im * b.re;
}
INLINE void add_product_conj(complex& s, const complex& a, const complex& b) {
    s.re += a.re * b.re; s.re += a.im * b.im;
    s.im += a.im * b.re; s.im -= a.re * b.im;
}
