// The force of the hopping term D (kernels/hop.cu) for pairs of vectors X_i and Y_i on all sites. With dS = 2 sum over i of
// w_i Re X_i^dagger (dD) Y_i it is added to F_mu(x) as the traceless antihermitian part of
//   sum over i of w_i U_mu(x) V_i,
//   V_i = sum over spins of [(1 - gamma_mu) Y_i(x + mu)] X_i(x)^dagger + [(1 + gamma_mu) X_i(x + mu)] Y_i(x)^dagger.
// The halos above the slab must be up to date. Since (1 + s gamma_mu)^2 = 2 (1 + s gamma_mu), the sums over four spins are
// those over the two of half spinors.
#include "arch/launch.h"
#include "dirac/force.h"
#include "dirac/spinors.h"
#include "dirac/transport.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Transport transport;
    Spinors x, y;
    GROUP::AlgebraField force;
    double weights[MOST_PAIRS];
    int pairs;
};

// v += weight times the sum over spins of [(1 + s gamma_mu) ahead(x + mu)] here(x)^dagger.
template <int MU>
INLINE void add_term(const Arguments& a, const Site& site, const Neighbour& there, const Spinors& ahead,
                     const Spinors& here, int number, scalar s, real (&v)[MATRIX_REALS]) {
    const Geometry& g = a.geometry;
    Spinor psi;
    STORAGE::load(g, spinor_block(ahead, there.slice, 1 - site.parity, number), there.slot, psi.c);
    HalfSpinor h = project<MU>(psi, s);
    if (LANES > 1 && there.crossing != 0) permute_lanes(h, g.lane_orders, NO_CROSSING + there.crossing);
    if ((a.transport.phases >> MU & 1) && there.outside) multiply_phase(a.transport, MU, true, h);
    HalfSpinor k = project<MU>(load_spinor(here, g, site, number), s);
    const scalar weight = (scalar)a.weights[number];
    UNROLL for (int i = 0; i < HALF_SPINOR_REALS; i++) k.c[i] = weight * k.c[i];
    add_outer_product(v, h, k);
}

// u v.
INLINE void multiply_entries(const real (&u)[MATRIX_REALS], const real (&v)[MATRIX_REALS], real (&w)[MATRIX_REALS]) {
    constexpr int N = GROUP::N;
    UNROLL for (int i = 0; i < N; i++)
        UNROLL for (int j = 0; j < N; j++) {
            real re = broadcast(0), im = broadcast(0);
            UNROLL for (int k = 0; k < N; k++) {
                const int p = 2 * (i * N + k), q = 2 * (k * N + j);
                re = re + u[p] * v[q] - u[p + 1] * v[q + 1];
                im = im + u[p] * v[q + 1] + u[p + 1] * v[q];
            }
            w[2 * (i * N + j)] = re, w[2 * (i * N + j) + 1] = im;
        }
}

template <int MU> INLINE void add_direction(const Arguments& a, Site site) {
    compute_again(site.slot), compute_again(site.t);  // or else X and Y would be kept for all directions
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const Neighbour there = neighbour<MU>(g, site, true);
    real v[MATRIX_REALS], u[MATRIX_REALS], w[MATRIX_REALS];
    UNROLL for (int i = 0; i < MATRIX_REALS; i++) v[i] = broadcast(0);
    ROLLED for (int i = 0; i < 2 * a.pairs; i++) {
        const bool second = i & 1;
        add_term<MU>(a, site, there, second ? a.x : a.y, second ? a.y : a.x, i / 2, second ? 1 : -1, v);
    }
    load_entries(a.transport, g, slice_in_memory(g, site), site.parity, site.slot, MU, u);
    multiply_entries(u, v, w);
    const packet_index here = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, MU);
    a.force.store(g, here, a.force.load(g, here) + traceless_part(w));
}

INLINE void hopping_force_site(const Arguments& a, const Site& site) {
    add_direction<0>(a, site);
    add_direction<1>(a, site);
    add_direction<2>(a, site);
    add_direction<3>(a, site);
}

SITE_KERNEL(hopping_force, hopping_force_site)
