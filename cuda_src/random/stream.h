// Uniform random numbers in (0, 1), never 0 or 1. Every generator offers
//
//   STATE_WORDS           32-bit words of state a site, 0 for a counter-based generator
//   Generator<USUAL>(stream, geometry, site, mu)
//                         the numbers that belong to this link in this sweep; most links take no
//                         more than USUAL of them
//   begin(k)              go to the k-th sub-stream, 0 <= k < 4 (counter-based generators)
//   uniforms(u)           N numbers for every lane
//   uniforms(u, wanted)   N more, at most four; lanes outside `wanted` draw nothing
//   end()                 keep the state
//
// so that a number depends only on the seed, the site, the direction and the sweep, and never on the
// threads, lanes or slabs that share the work.
#pragma once

#include "lattice/geometry.h"

struct Stream {
    unsigned key[20];  // what the generator's Python module makes of the seed
    unsigned step[2];  // number of the sweep, low word first
    unsigned* state;   // of every site, or null
};

// W words of every site, [t][parity] and then, in the machine's order, slots and packets of words.
template <int W> struct States {
    unsigned* all;
    packet_index first, stride;

    INLINE States(const Stream& stream, const Geometry& g, const Site& s)
        : all(stream.state),
          first((packet_index)((s.t * 2 + s.parity) * (W / WORDS_PER_PACKET<W>)) * (packet_index)g.slots +
                (packet_index)(s.slot * (SLOT_BY_SLOT ? W : 1))),
          stride((packet_index)g.slots) {}

    INLINE void read(word (&w)[W]) const { load_words(all, first, stride, w); }
    INLINE void write(const word (&w)[W]) const { store_words(all, first, stride, w); }
};

// Map 31 random bits n to (n + 1/2) 2^-31. In single precision the unit is 2^-31 - 2^-55, because
// rounding would otherwise reach 1.
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
// Map 24 random bits n to (n + 1/2) 2^-24. Rounding may reach 1, which is cut off.
INLINE real uniform_from_24_bits(word n) {
    return smaller(real_from_31_bits(n, 0x1p-24f, 0x1p-25f), broadcast(0x1.fffffep-1f));
}
#else
// Map 24 bits and 24 more, together n, to (n + 1/2) 2^-48. Nothing is rounded: n is put into the
// mantissa of a number in [1, 2).
INLINE real uniform_from_48_bits(word high, word low) {
    wide h[HALVES], l[HALVES];
    spread(high, h);
    spread(low, l);
    const wide n = h[0] << 28 | (l[0] & 0xffffffu) << 4 | 8;
    return from_bits((real_bits)(n | 0x3ff0000000000000ull)) - 1.0;
}
#endif
