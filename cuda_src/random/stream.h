// Uniform random numbers in (0, 1), never 0 or 1. Every generator offers
//
//   Generator<USUAL>(stream, geometry, site, mu)   the numbers that belong to this link in this
//                         sweep; mostly a link takes no more than USUAL
//   begin(k)              its k-th sub-stream, 0 <= k < 4 (counter-based ones)
//   uniforms(u)           N numbers for every lane
//   uniforms(u, wanted)   N more, four at most; lanes outside `wanted` draw nothing
//   end()                 keeps the state
//
// so that a number depends on the seed, the site, the direction and the sweep alone: never on the
// threads, lanes or slabs that share the work.
#pragma once

#include "../lattice.h"

struct Stream {
    unsigned key[20];   // of Philox's rounds, two each
    unsigned step[2];   // of the sweep
    unsigned* state;    // of every site, for generators that have one
};

// W words of every site: for every lane of a slot one after the other (CPU), or, in pieces of four
// where they divide W, as the pieces of a link (GPU): [t][parity][piece][slot].
template <int W> struct States {
#ifdef __CUDACC__
    static constexpr int TOGETHER = W % 4 == 0 ? 4 : 1;
    unsigned* all;
    piece_index first, stride;

    INLINE States(const Stream& stream, const Geometry& g, const Site& s)
        : all(stream.state), first((piece_index)((s.t * 2 + s.parity) * (W / TOGETHER)) * (piece_index)g.slots + s.slot),
          stride(g.slots) {}

    INLINE void read(word (&w)[W]) const {
        UNROLL for (int i = 0; i < W; i += TOGETHER) {
            if constexpr (TOGETHER == 4) {
                const uint4 four = ((const uint4*)all)[first + i / 4 * stride];
                w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
            } else {
                w[i] = all[first + i * stride];
            }
        }
    }
    INLINE void write(const word (&w)[W]) const {
        UNROLL for (int i = 0; i < W; i += TOGETHER) {
            if constexpr (TOGETHER == 4)
                ((uint4*)all)[first + i / 4 * stride] = make_uint4(w[i], w[i + 1], w[i + 2], w[i + 3]);
            else
                all[first + i * stride] = w[i];
        }
    }
#else
    word* first;

    INLINE States(const Stream& stream, const Geometry& g, const Site& s)
        : first((word*)stream.state + ((long long)(s.t * 2 + s.parity) * g.slots + s.slot) * W) {}

    INLINE void read(word (&w)[W]) const {
        UNROLL for (int i = 0; i < W; i++) w[i] = first[i];
        // Those of the next slot.
        UNROLL for (int i = 0; i < W; i++) __builtin_prefetch(&first[W + i]);
    }
    INLINE void write(const word (&w)[W]) const { UNROLL for (int i = 0; i < W; i++) first[i] = w[i]; }
#endif
};

// 31 random bits to (0, 1): n + 1/2 in units of 2^-31; in single precision of 2^-31 - 2^-55, or
// rounding would reach 1.
INLINE real uniform_from_31_bits(word n) {
#if REAL_BYTES == 4
    return real_from_31_bits(n, 0x1.fffffep-32f, 0x1p-32f);
#else
    wide half[HALVES];
    spread(n, half);
    return (from_bits((real_bits)((half[0] & 0x7fffffffu) | 0x4330000000000000ull)) - 0x1p52) * 0x1p-31 + 0x1p-32;
#endif
}

#if REAL_BYTES == 4
// 24 random bits: n + 1/2 in units of 2^-24. Rounding may reach 1, which is cut off.
INLINE real uniform_from_24_bits(word n) {
    return smaller(real_from_31_bits(n, 0x1p-24f, 0x1p-25f), broadcast(0x1.fffffep-1f));
}
#else
// n + 1/2 in units of 2^-48, of 24 bits and 24 more; nothing is rounded.
INLINE real uniform_from_48_bits(word high, word low) {
    wide h[HALVES], l[HALVES];
    spread(high, h);
    spread(low, l);
    const wide n = h[0] << 28 | (l[0] & 0xffffffu) << 4 | 8;
    return from_bits((real_bits)(n | 0x3ff0000000000000ull)) - 1.0;
}
#endif
