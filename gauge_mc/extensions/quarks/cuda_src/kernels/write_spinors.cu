// Write a vector on the sites of one parity of a time slice to the reals [z][y][x][spin][colour][re, im] of an array.
#include "arch/launch.h"
#include "dirac/array.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors spinors;
    unsigned* words;
    int vector;
};

INLINE void write_spinors_site(const Arguments& a, const Site& site) {
    const ArrayPlaces places(a.geometry, site);
    const Spinor psi = load_spinor(a.spinors, a.geometry, site, a.vector);
    word w[2 * SPINOR_REALS];
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) {
        const int place = 2 * place_in_array(i);
        double_bits(to_double(psi.c[i]), w[place], w[place + 1]);
    }
    store_lane_words(a.words, places.at, 2 * SPINOR_REALS, w);
}

SITE_KERNEL(write_spinors, write_spinors_site)
