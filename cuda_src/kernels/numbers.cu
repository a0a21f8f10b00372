// The numbers that a link of SU(2), where one proposal in two is refused, or of SU(3), where one
// subgroup has that luck, would draw: 4 or 8 in each of three sub-streams.
#include "../kernel.h"
#include "../random/lcg.h"
#include "../random/philox.h"
#include "../random/ranlux.h"
#include "../su3.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Stream stream;
    Stream numbers;   // their bits, in words like those of a state
};

INLINE void numbers_site(const Arguments& a, const Site& site) {
    constexpr int DRAWS = 3 * (GROUP::N - 1), NUMBERS = 4 * DRAWS, EACH = REAL_BYTES / 4;
    RANDOM<NUMBERS> random(a.stream, a.geometry, site, a.work.mu);
    word bits[NUMBERS * EACH];
    UNROLL for (int draw = 0; draw < DRAWS; draw++) {
        real u[4];
        if (draw == DRAWS - 1) {
            random.uniforms(u, everywhere(true));
        } else {
            random.begin(draw % 4);
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

SITE_KERNEL(numbers, Arguments, numbers_site)
