// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC11, doi:10.1145/2063384.2063405, section 3.3 and
// table 2): a keyed bijection of 128-bit counters, which needs no state. The key is the seed, and the
// counter consists of four words:
//
//   word 0      number of the site
//   word 1      bits 0-1: direction mu; bits 2-3: sub-stream k modulo 4; bits 4-15: number of the block;
//               bits 16-31: k / 4
//   words 2, 3  number of the sweep, low word first
//
// So each link has, in each sweep and sub-stream, 2^12 blocks of 128 bits. The heatbath draws from a sub-stream for
// each SU(2) subgroup and from one for the directions (update/heatbath.h). Its at most 1000 attempts per
// subgroup draw at most 1001 times four numbers, which are 2002 blocks in double precision. Sites have numbers
// below 2^32, because `streams` in gauge_mc/random.py allows no larger lattice.
#pragma once

#include "random/stream.h"

constexpr int PHILOX_ROUNDS = 10;
static_assert(KEY_WORDS == 2 * PHILOX_ROUNDS);

// The multipliers are PHILOX_M4x32_0 and PHILOX_M4x32_1 of Random123, the library of the paper's authors, and
// those of std::philox4x32 in C++26. The keys of round n are words 2 n and 2 n + 1 of `key`. Their increments
// from round to round, the Weyl constants, are in gauge_mc/random.py.
INLINE void philox4x32(wide (&c)[4], const unsigned (&key)[KEY_WORDS]) {
    UNROLL for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const wide p0 = product32(c[0], 0xD2511F53u), p1 = product32(c[2], 0xCD9E8D57u);
        c[0] = (p1 >> 32) ^ c[1] ^ key[2 * round];
        c[1] = p1;
        c[2] = (p0 >> 32) ^ c[3] ^ key[2 * round + 1];
        c[3] = p0;
    }
}

template <int> struct Philox {
    static constexpr int STATE_WORDS = 0;

    Stream stream;
    word site;
    unsigned draw;

    INLINE Philox(const Stream& stream, const Geometry& g, const Site& s, int mu)
        : stream(stream), site(site_number(g, s)), draw(mu) {}

    INLINE void begin(int k) { draw = (draw & 3) | (k & 3) << 2 | (unsigned)k >> 2 << 16; }
    INLINE void end() {}

    // Draw the next block, whose number begins at bit 4 of word 1.
    INLINE void block(wide (&out)[4][HALVES]) {
        wide number[HALVES];
        spread(site, number);
        UNROLL for (int half = 0; half < HALVES; half++) {
            wide c[4] = {number[half], wide{} + draw, wide{} + stream.step[0], wide{} + stream.step[1]};
            philox4x32(c, stream.key);
            UNROLL for (int i = 0; i < 4; i++) out[i][half] = c[i];
        }
        draw += 16;
    }

    template <int N> INLINE void uniforms(real (&u)[N]) { uniforms(u, everywhere(true)); }
    template <int N> INLINE void uniforms(real (&u)[N], mask) {
        constexpr int PER_BLOCK = 16 / REAL_BYTES;
        UNROLL for (int first = 0; first < N; first += PER_BLOCK) {
            wide bits[4][HALVES];
            block(bits);
            UNROLL for (int i = 0; i < PER_BLOCK; i++) {
                if (first + i >= N) break;
#if REAL_BYTES == 4
                u[first + i] = uniform_from_31_bits(gather(bits[i]) >> 1);
#else
                // Use 52 bits as the mantissa of a number in [1, 2), subtract 1, and add half a unit.
                const wide mantissa = ((bits[2 * i][0] << 32) | (bits[2 * i + 1][0] & 0xffffffffu)) >> 12;
                u[first + i] = from_bits((real_bits)(mantissa | 0x3ff0000000000000ull)) - (1 - 0x1p-53);
#endif
            }
        }
    }
};
