// Uniform random numbers in (0, 1), never 0 or 1. Every generator offers
//
//   Generator(stream, geometry, site, mu)   the numbers that belong to this link in this sweep
//   begin(k)                                its k-th sub-stream, 0 <= k < 4 (counter-based ones)
//   uniforms(u, wanted)                     N numbers; lanes outside `wanted` draw nothing
//   end()                                   keeps the state
//
// so that a number depends on the seed, the site, the direction and the sweep alone: never on the
// threads, lanes or slabs that share the work.
#pragma once

#include "../lattice.h"

struct Stream {
    unsigned seed[2];
    unsigned step[2];   // of the sweep
    unsigned* state;    // of every site, for generators that have one
};

// 31 random bits to (0, 1): n + 1/2 in units of 2^-31. Rounding may reach 1, which is cut off.
INLINE real uniform_from_31_bits(word n) {
#if REAL_BYTES == 4
    return smaller(real_from_31_bits(n, 0x1p-31f, 0x1p-32f), broadcast(0x1.fffffep-1f));
#else
    wide half[HALVES];
    spread(n, half);
    return (from_bits((real_bits)((half[0] & 0x7fffffffu) | 0x4330000000000000ull)) - 0x1p52) * 0x1p-31 + 0x1p-32;
#endif
}
