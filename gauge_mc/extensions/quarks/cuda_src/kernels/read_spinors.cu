// Set a vector on the sites of one parity of a time slice to the reals [z][y][x][spin][colour][re, im] of an array.
#include "arch/launch.h"
#include "dirac/array.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors spinors;
    const unsigned* words;
    int vector;
};

INLINE void read_spinors_site(const Arguments& a, const Site& site) {
    const ArrayPlaces places(a.geometry, site);
    word w[2 * SPINOR_REALS];
    load_lane_words(a.words, places.at, 2 * SPINOR_REALS, w);
    Spinor psi;
    UNROLL for (int i = 0; i < SPINOR_REALS; i++) {
        const int place = 2 * place_in_array(i);
        psi.c[i] = from_double(double_of_bits(w[place], w[place + 1]));
    }
    store_spinor(a.spinors, a.geometry, site, a.vector, psi);
}

SITE_KERNEL(read_spinors, read_spinors_site)
