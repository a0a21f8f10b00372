// The hopping term of Wilson fermions on the sites of one parity, combined with the diagonal part A of the operator:
//   D psi(x) = sum over mu of (1 - gamma_mu) U_mu(x) psi(x + mu) + (1 + gamma_mu) U_mu(x - mu)^dagger psi(x - mu).
// The result is
//   form 0: A^{-1} D psi
//   form 1: u + factor A^{-1} D psi
//   form 2: A u + factor D psi
//   form 3: A^{-1} (u + factor D psi)
// or the same with D^dagger = gamma_5 D gamma_5 and A^dagger if s = -1. The result may take the place of u. REFLECTION says
// what is done with it at the end.
#include "arch/launch.h"
#include "dirac/diagonal.h"
#include "dirac/reflection.h"
#include "dirac/transport.h"

constexpr int DIVIDED = 0, ADDED = 1, WHOLE = 2, SOLVED = 3;  // forms

struct Arguments {
    Geometry geometry;
    Work work;
    Transport transport;
    DIAGONAL::Terms diagonal;
    REFLECTION::Addends reflection;
    Spinors source, other, target;  // psi, u and the result
    double factor, s;
    int form, vectors;  // the number of vectors is a multiple of VECTORS
    Shares shares;
};

INLINE void hopping(const Arguments& a, const Site& site, int vector, Spinor (&sum)[VECTORS]) {
    const Geometry& g = a.geometry;
    const scalar s = (scalar)a.s;
    auto load = [&](const Neighbour& there, int v, Spinor& psi) {
        const char* const block = spinor_block(a.source, there.slice, 1 - site.parity, vector + v);
        return STORAGE::load_counts(g, block, there.slot, psi.c);
    };
    UNROLL for (int i = 0; i < SPINOR_REALS; i++)
        UNROLL for (int v = 0; v < VECTORS; v++) sum[v].c[i] = broadcast(0);
    add_transported<0, true>(a.transport, g, site, -s, load, sum);
    add_transported<0, false>(a.transport, g, site, s, load, sum);
    add_transported<1, true>(a.transport, g, site, -s, load, sum);
    add_transported<1, false>(a.transport, g, site, s, load, sum);
    add_transported<2, true>(a.transport, g, site, -s, load, sum);
    add_transported<2, false>(a.transport, g, site, s, load, sum);
    add_transported<3, true>(a.transport, g, site, -s, load, sum);
    add_transported<3, false>(a.transport, g, site, s, load, sum);
}

INLINE void finish(const Arguments& a, const Site& site, int vector, Spinor& y) {
    const Geometry& g = a.geometry;
    const scalar s = (scalar)a.s, factor = (scalar)a.factor;
    if (a.form <= ADDED) DIAGONAL::apply_inverse(a.diagonal, g, site, s, y);
    if (a.form != DIVIDED) {
        Spinor u = load_spinor(a.other, g, site, vector);
        if (a.form == WHOLE) DIAGONAL::apply(a.diagonal, g, site, s, u);
        UNROLL for (int i = 0; i < SPINOR_REALS; i++) y.c[i] = u.c[i] + factor * y.c[i];
    }
    if (a.form == SOLVED) DIAGONAL::apply_inverse(a.diagonal, g, site, s, y);
    auto load_u = [&]() { return load_spinor(a.other, g, site, vector); };
    REFLECTION::finish(a.reflection, g, site, vector, load_u, y);
    store_spinor(a.target, g, site, vector, y);
}

INLINE void hop_site(const Arguments& a, Site site, int share, int shares) {
    ROLLED
    for (int vector = share * VECTORS; vector < a.vectors; vector += shares * VECTORS) {
        compute_again(site.x), compute_again(site.y), compute_again(site.z), compute_again(site.t);
        compute_again(site.slot), compute_again(site.parity);
        Spinor y[VECTORS];
        hopping(a, site, vector, y);
        UNROLL for (int v = 0; v < VECTORS; v++) finish(a, site, vector + v, y[v]);
    }
}

INLINE void complete_site(const Arguments& a, const Site& site, bool here, int share, int shares) {
    REFLECTION::complete(a.reflection, a.geometry, site, here, share, shares);
}

SHARED_KERNEL_IN_TWO(hop, hop_site, REFLECTION::IN_TWO, complete_site)
