// A step of Gaussian smearing of spinors in space:
//   here psi(x) + there sum over mu = x, y, z of U_mu(x) psi(x + mu) + U_mu(x - mu)^dagger psi(x - mu).
#include "arch/launch.h"
#include "dirac/spinors.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Spinors source, target;
    double here, there;
    int vectors;
};

// sum += u psi or u^dagger psi, given the entries [row][column][re, im] of u.
INLINE void add_times(const real (&u)[2 * GROUP::N * GROUP::N], bool adjoint, const Spinor& psi, Spinor& sum) {
    UNROLL for (int i = 0; i < SPINS; i++)
        UNROLL for (int a = 0; a < GROUP::N; a++) {
            real re = sum.c[component(i, a)], im = sum.c[component(i, a) + 1];
            UNROLL for (int b = 0; b < GROUP::N; b++) {
                const int plain = 2 * (a * GROUP::N + b), turned = 2 * (b * GROUP::N + a);
                const real p = adjoint ? u[turned] : u[plain], q = adjoint ? -u[turned + 1] : u[plain + 1];
                const real r = psi.c[component(i, b)], s = psi.c[component(i, b) + 1];
                re = re + p * r - q * s;
                im = im + p * s + q * r;
            }
            sum.c[component(i, a)] = re, sum.c[component(i, a) + 1] = im;
        }
}

INLINE void add_neighbour(const Arguments& a, const Site& site, int mu, bool forward, int vector, Spinor& sum) {
    typedef GROUP::Field Field;
    typedef Links<COMPONENTS_PER_PACKET> Slots;  // whose places are slots
    const Geometry& g = a.geometry;
    const Offset slots = Slots::step(g, site, mu, forward), back = Field::step(g, site, mu, forward);
    Site there = site;
    there.slot += (int)slots.packets;
    there.parity = 1 - site.parity;
    Spinor psi = load_spinor(a.source, g, there, vector);
    if (LANES > 1 && slots.crossing != 0) permute_lanes(psi, g.lane_orders, NO_CROSSING + slots.crossing);
    real c[GROUP::COMPONENTS], u[2 * GROUP::N * GROUP::N];
    const packet_index here = Field::place(g, site);
    if (forward) a.links.read(g, here + Field::direction(g, site.parity, mu), 0, c);
    else a.links.read(g, here + Field::direction(g, there.parity, mu) + back.packets, back.crossing, c);
    GROUP::entries(c, u);
    add_times(u, !forward, psi, sum);
}

INLINE void gauss_step_site(const Arguments& a, const Site& site) {
    const scalar here = (scalar)a.here, there = (scalar)a.there;
    ROLLED
    for (int vector = 0; vector < a.vectors; vector++) {
        Spinor sum;
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) sum.c[i] = broadcast(0);
        ROLLED
        for (int step = 0; step < 6; step++) add_neighbour(a, site, step >> 1, step & 1, vector, sum);
        Spinor psi = load_spinor(a.source, a.geometry, site, vector);
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) psi.c[i] = here * psi.c[i] + there * sum.c[i];
        store_spinor(a.target, a.geometry, site, vector, psi);
    }
}

SITE_KERNEL(gauss_step, gauss_step_site)
