// Sums over sites of the conserved currents of domain-wall quarks along t, for a vector y_s:
//   z_s = <gamma_5 y_{L-1-s}(x), (1 - gamma_t) U_t(x) y_s(x + t)>
// The first value is the sum over s of Re z_s for s >= L/2, less that for s < L/2; the second one is that of all Im z_s.
#include "arch/launch.h"
#include "dirac/spinors.h"
#include "dirac/transport.h"

constexpr int VALUES = 2;

struct Arguments {
    Geometry geometry;
    Work work;
    Transport transport;
    Spinors y;
    double* sums;
    int extent;
};

INLINE void wall_currents_site(const Arguments& a, const Site& site, real (&values)[VALUES]) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int s = 0; s < a.extent; s++) {
        auto load = [&](const Neighbour& there, int, Spinor& psi) {
            return STORAGE::load_counts(g, spinor_block(a.y, there.slice, 1 - site.parity, s), there.slot, psi.c);
        };
        Spinor sum[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++)
            UNROLL for (int i = 0; i < SPINOR_REALS; i++) sum[v].c[i] = broadcast(0);
        add_transported<3, true>(a.transport, g, site, -1, load, sum);
        const Spinor left = load_spinor(a.y, g, site, a.extent - 1 - s);
        real re = broadcast(0), im = broadcast(0);
        UNROLL for (int i = 0; i < SPINOR_REALS; i += 2) {
            const scalar sign = i / 2 % SPINS < 2 ? 1 : -1;  // gamma_5
            re = re + sign * (left.c[i] * sum[0].c[i] + left.c[i + 1] * sum[0].c[i + 1]);
            im = im + sign * (left.c[i] * sum[0].c[i + 1] - left.c[i + 1] * sum[0].c[i]);
        }
        values[0] = values[0] + (2 * s < a.extent ? scalar(-1) : scalar(1)) * re;
        values[1] = values[1] + im;
    }
}

WIDE_SUM_KERNEL(wall_currents, VALUES, wall_currents_site)
