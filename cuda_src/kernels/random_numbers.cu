// The random numbers of a link with several rejected proposals, for tests of generators: 3 draws of four
// numbers for SU(2) and 6 for SU(3). Before each draw but the last, the kernel enters a new sub-stream as long as
// one of the four is left. The last draw is made like one after a rejected proposal.
#include "arch/launch.h"
#include "group/group.h"
#include "random/random.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Stream stream;
    Stream numbers;  // where the bits of the numbers are stored, as the words of a state
};

INLINE void random_numbers_site(const Arguments& a, const Site& site) {
    constexpr int DRAWS = 3 * (GROUP::N - 1), NUMBERS = 4 * DRAWS, EACH = REAL_BYTES / 4;
    RANDOM<NUMBERS> random(a.stream, a.geometry, site, a.work.mu);
    word bits[NUMBERS * EACH];
    UNROLL for (int draw = 0; draw < DRAWS; draw++) {
        real u[4];
        if (draw == DRAWS - 1) {
            random.uniforms(u, everywhere(true));
        } else {
            if (draw < 4) random.begin(draw);
            random.uniforms(u);
        }
        UNROLL for (int i = 0; i < 4; i++) {
            word* const w = bits + (4 * draw + i) * EACH;
#if REAL_BYTES == 4
            w[0] = (word)bits_of(u[i]);
#else
            wide half[HALVES] = {(wide)bits_of(u[i])};
            w[0] = gather(half);
            half[0] = half[0] >> 32;
            w[1] = gather(half);
#endif
        }
    }
    random.end();
    States<NUMBERS * EACH>(a.numbers, a.geometry, site).write(bits);
}

SITE_KERNEL(random_numbers, random_numbers_site)
