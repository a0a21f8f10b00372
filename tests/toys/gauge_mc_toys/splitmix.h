// A toy generator with 32 bits of state per site: hashed members of a Weyl sequence, as in SplitMix
// (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014). The increment is 2^32 times the fractional part of
// the golden ratio, and the hash is a published one of 32 bits (github.com/skeeto/hash-prospector). Its
// quality has not been tested.
#pragma once

#include "random/stream.h"

template <int> struct Splitmix {
    static constexpr int STATE_WORDS = 1;

    States<STATE_WORDS> states;
    word x[STATE_WORDS];

    INLINE Splitmix(const Stream& stream, const Geometry& g, const Site& s, int) : states(stream, g, s) { states.read(x); }

    INLINE void begin(int) {}
    INLINE void end() { states.write(x); }

    static INLINE word hashed(word z) {
        z = (z ^ (z >> 16)) * 0x21f0aaadu;
        z = (z ^ (z >> 15)) * 0x735a2d97u;
        return z ^ (z >> 15);
    }

    template <int N> INLINE void uniforms(real (&u)[N]) { uniforms(u, everywhere(true)); }
    template <int N> INLINE void uniforms(real (&u)[N], mask wanted) {
        word y = x[0];
        UNROLL for (int i = 0; i < N; i++) {
            y = y + 0x9e3779b9u;
            u[i] = uniform_from_31_bits(hashed(y) >> 1);
        }
        x[0] = select_word(wanted, y, x[0]);
    }
};
