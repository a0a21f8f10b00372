// Sums over sites of the products of two propagators S1 and S2 that are traced in colour, for one pair of source spins j
// and l and sink spins i of the upper or of the lower half:
//   sum over colours a, b of S1[i a, j b] conj(S2[k a, l b]),  i = sink, sink + 1,  k = 0, ..., 3.
// The vectors of a propagator are its columns [j][b].
#include "arch/launch.h"
#include "dirac/spinors.h"
#include "dirac/waves.h"

constexpr int SINK_SPINS = 2;             // values of i per launch
constexpr int PAIRS = SINK_SPINS * 4;     // complex numbers per launch, [i][k]

struct Arguments {
    Geometry geometry;
    Work work;
    Spinors first, second;
    const unsigned* waves;
    double* sums;
    int sink, first_spin, second_spin;  // i, j and l
};

INLINE void quark_pairs_site(const Arguments& a, const Site& site, real (&values)[2 * PAIRS]) {
    const Geometry& g = a.geometry;
    const mask lower_half = everywhere(a.sink);
    real sum[2 * PAIRS];
    UNROLL for (int n = 0; n < 2 * PAIRS; n++) sum[n] = broadcast(0);
    ROLLED
    for (int colour = 0; colour < GROUP::N; colour++) {
        const Spinor s = load_spinor(a.first, g, site, a.first_spin * GROUP::N + colour);
        const Spinor r = load_spinor(a.second, g, site, a.second_spin * GROUP::N + colour);
        UNROLL for (int i = 0; i < SINK_SPINS; i++) {
            UNROLL for (int c = 0; c < GROUP::N; c++) {
                const int upper = component(i, c), lower = component(i + SINK_SPINS, c);
                const real re = select(lower_half, s.c[lower], s.c[upper]);
                const real im = select(lower_half, s.c[lower + 1], s.c[upper + 1]);
                UNROLL for (int k = 0; k < SPINS; k++) {
                    const real p = r.c[component(k, c)], q = r.c[component(k, c) + 1];
                    real* const to = sum + 2 * (i * SPINS + k);
                    to[0] = to[0] + re * p + im * q;
                    to[1] = to[1] + im * p - re * q;
                }
            }
        }
    }
    UNROLL for (int n = 0; n < 2 * PAIRS; n += 2) {
        multiply_by_wave(a.waves, g, site, sum[n], sum[n + 1]);
        values[n] = sum[n], values[n + 1] = sum[n + 1];
    }
}

WIDE_SUM_KERNEL(quark_pairs, 2 * PAIRS, quark_pairs_site)
