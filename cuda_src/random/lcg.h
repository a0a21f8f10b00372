// The linear congruential generator of Cardoso and Bicudo (arXiv:1010.4834, eqs. 19 and 20), with one
// state per site. The recurrence is eq. 19, x -> (a x + b) mod m with a = 1664525, b = 1013904223 and
// m = 2^31 - 1; eq. 20 gives the first states, in gauge_mc/random.py. a and b are those of a quick and
// dirty generator of Numerical Recipes in C (section 7.1), whose modulus is 2^32. The generator is simple and
// fast, but its quality is poor.
#pragma once

#include "random/stream.h"

template <int> struct Lcg {
    static constexpr int STATE_WORDS = 1;

    States<STATE_WORDS> states;
    word x[STATE_WORDS];

    INLINE Lcg(const Stream& stream, const Geometry& g, const Site& s, int) : states(stream, g, s) { states.read(x); }

    INLINE void begin(int) {}
    INLINE void end() { states.write(x); }

    // Reduce modulo m by adding the bits above the lowest 31 to these, since 2^31 = 1 mod m.
    static INLINE word next(word x) {
        wide half[HALVES];
        spread(x, half);
        UNROLL for (int i = 0; i < HALVES; i++) {
            const wide p = product32(half[i], 1664525u) + 1013904223u;
            const wide r = (p & 0x7fffffffu) + (p >> 31);
            half[i] = (r + ((r + 1) >> 31)) & 0x7fffffffu;
        }
        return gather(half);
    }

    template <int N> INLINE void uniforms(real (&u)[N]) { uniforms(u, everywhere(true)); }
    template <int N> INLINE void uniforms(real (&u)[N], mask wanted) {
        word y = x[0];
        UNROLL for (int i = 0; i < N; i++) {
            y = next(y);
            u[i] = uniform_from_31_bits(y);
        }
        x[0] = select_word(wanted, y, x[0]);
    }
};
