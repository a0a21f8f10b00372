// Uniform random numbers in (0, 1), never 0 or 1. Every generator declares
//
//   STATE_WORDS           32-bit words of state per site, 0 for a counter-based generator
//   Generator<USUAL>(stream, geometry, site, mu)
//                         the numbers of this link in this sweep; most links need at most USUAL
//                         numbers
//   begin(k)              go to the k-th sub-stream, 0 <= k < 2^16 (counter-based generators)
//   uniforms(u)           draw N numbers for every lane
//   uniforms(u, wanted)   draw N <= 4 more numbers for the lanes in `wanted`
//   end()                 store the state
//
// The numbers of a link depend only on the seed, the site, the direction and the sweep, and not on the
// threads, lanes or slabs that share the work.
#pragma once

#include "lattice/geometry.h"

constexpr int KEY_WORDS = 20;  // two for each of the ten rounds of Philox

struct Stream {
    unsigned key[KEY_WORDS];  // computed from the seed by the generator's Python module
    unsigned step[2];         // number of the sweep, low word first
    unsigned* state;          // states of all sites, or null
};

// W words per site: [replica][t][parity], and then slots and packets of words in the order of the machine.
template <int W> struct States {
    unsigned* all;
    packet_index first, stride;

    INLINE States(const Stream& stream, const Geometry& g, const Site& s)
        : all(stream.state),
          first((packet_index)((slice_in_memory(g, s) * 2 + s.parity) * (W / WORDS_PER_PACKET<W>)) * (packet_index)g.slots +
                (packet_index)(s.slot * (SLOT_BY_SLOT ? W : 1))),
          stride((packet_index)g.slots) {}

    INLINE void read(word (&w)[W]) const { load_words(all, first, stride, w); }
    INLINE void write(const word (&w)[W]) const { store_words(all, first, stride, w); }
};

// Map 31 random bits n to (n + 1/2) 2^-31. In single precision the factor of n is 0x1.fffffep-32 = 2^-31 - 2^-55,
// the float below 2^-31: n itself is rounded to a float, at most to 2^31, and the result must not become 1. The
// largest result is 1 - 2^-24.
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
// Map 24 random bits n to (n + 1/2) 2^-24. The result for the largest n rounds to 1; it becomes the largest float
// below 1, 0x1.fffffep-1 = 1 - 2^-24.
INLINE real uniform_from_24_bits(word n) {
    return smaller(real_from_31_bits(n, 0x1p-24f, 0x1p-25f), broadcast(0x1.fffffep-1f));
}
#else
// Map 48 random bits n, the 24 high and the 24 low ones, to (n + 1/2) 2^-48. This is exact: n becomes part
// of the mantissa of a number in [1, 2).
INLINE real uniform_from_48_bits(word high, word low) {
    wide h[HALVES], l[HALVES];
    spread(high, h);
    spread(low, l);
    const wide n = h[0] << 28 | (l[0] & 0xffffffu) << 4 | 8;
    return from_bits((real_bits)(n | 0x3ff0000000000000ull)) - 1.0;
}
#endif
