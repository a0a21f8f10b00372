// The linear congruential generator of Cardoso and Bicudo (arXiv:1010.4834, eqs. 19 and 20), one
// state a site: x -> (a x + b) mod m with m = 2^31 - 1. Simple and fast; its quality is poor.
#pragma once

#include "stream.h"

struct Lcg {
    static constexpr int STATE_WORDS = 1;

    word* place;
    word x;

    INLINE Lcg(const Stream& stream, const Geometry& g, const Site& s, int)
        : place((word*)stream.state + ((long long)(s.t * 2 + s.parity) * g.slots + s.slot)), x(*place) {}

    INLINE void begin(int) {}
    INLINE void end() { *place = x; }

    // 2^31 = 1 mod m, so the bits above the 31st are added to those below.
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

    template <int N> INLINE void uniforms(real (&u)[N], mask wanted) {
        word y = x;
        UNROLL for (int i = 0; i < N; i++) {
            y = next(y);
            u[i] = uniform_from_31_bits(y);
        }
        x = select_word(wanted, y, x);
    }
};
