// The links that transport a spinor, [t][parity][mu], and then a block with the numbers of every link. Selected by the
// compiler's command line:
//   TRANSPORT_HEADER  the header that declares the form of a link
//   TRANSPORT         its class, with C numbers between -1 and 1, and functions that rebuild the entries, and back
//   VECTORS           number of spinors that a thread transports by a link that it has loaded
// and by STORAGE. FewReals in the storage Reals is a field of links as in all other kernels.
//
// Spinors fulfil psi(x + L_mu) = exp(i theta_mu) psi(x) for the extents L_mu of the lattice.
#pragma once

#include "dirac/gamma.h"
#include "dirac/storage.h"
#include "dirac/vectors.h"

constexpr int MATRIX_REALS = 2 * GROUP::N * GROUP::N;

#include TRANSPORT_HEADER

struct Transport {
    void* links;
    double re[4], im[4];    // exp(i theta_mu)
    int phases;             // bit mu: theta_mu is not 0
    const void* lanes;      // [mu][forward, backward][re, im][LANES]: exp(i theta_mu) if the step leaves the lattice, else 1
};

INLINE char* link_block(const Transport& f, const Geometry& g, int slice, int parity, int mu) {
    const int bytes = STORAGE::unit_bytes(TRANSPORT::C) * LANES;
    return (char*)f.links + (long long)((slice * 2 + parity) * 4 + mu) * ((long long)bytes * g.slots);
}
INLINE void load_entries(const Transport& f, const Geometry& g, int slice, int parity, int slot, int mu,
                         real (&u)[MATRIX_REALS]) {
    real c[TRANSPORT::C];
    STORAGE::template load_unit<VECTORS == 1 && !SHARED>(g, link_block(f, g, slice, parity, mu), slot, c);
    TRANSPORT::entries(c, u);
}

// A neighbour along mu: its place in memory, the sub-lattice edges that are crossed, and whether the step may lead
// across the boundary of the lattice.
struct Neighbour {
    int slice, slot, crossing;
    bool outside;
};
template <int MU> INLINE Neighbour neighbour(const Geometry& g, const Site& s, bool forward) {
    typedef Links<COMPONENTS_PER_PACKET> Slots;  // whose places are slots
    const int here = slice_in_memory(g, s);
    if constexpr (MU == 3) {
        const bool wrap = s.t == (forward ? g.slices - 1 : 0);
        const int step = wrap ? (forward ? 1 - g.slices : g.slices - 1) : (forward ? 1 : -1);
        return {here + step, s.slot, 0, lattice_t(g, s.t) == (forward ? g.full[3] - 1 : 0)};
    } else {
        const Offset step = Slots::step(g, s, MU, forward);
        const int at = MU == 0 ? s.x : MU == 1 ? s.y : s.z;
        return {here, s.slot + (int)step.packets, step.crossing, at == (forward ? g.extent[MU] - 1 : 0)};
    }
}

// Multiply by the boundary phase of a step along mu.
INLINE void multiply_phase(const Transport& f, int mu, bool forward, HalfSpinor& h) {
    real re, im;
    if constexpr (LANES == 1) {
        re = broadcast((scalar)f.re[mu]), im = broadcast((scalar)f.im[mu]);
    } else {
        const char* const phase = (const char*)f.lanes + (4 * mu + (forward ? 0 : 2)) * sizeof(real);
        memcpy(&re, phase, sizeof re);
        memcpy(&im, phase + sizeof re, sizeof im);
    }
    if (!forward) im = -im;
    UNROLL for (int i = 0; i < HALF_SPINOR_REALS; i += 2) {
        const real p = h.c[i], q = h.c[i + 1];
        h.c[i] = re * p - im * q;
        h.c[i + 1] = re * q + im * p;
    }
}

// The unit of the numbers of a site.
struct Scale {
    real c[1];
};

// sum += (1 + s gamma_mu) U_mu(x) psi(x + mu), or with U_mu(x - mu)^dagger psi(x - mu) if not FORWARD, for VECTORS
// vectors psi, which load(neighbour, number, psi) loads as STORAGE::load_counts does: the unit is a factor of the sum.
// Both are multiplied at the site where the link begins, so that
// lanes are permuted once.
template <int MU, bool FORWARD, class Load>
INLINE void add_transported(const Transport& f, const Geometry& g, const Site& site, scalar s, Load load,
                            Spinor (&sum)[VECTORS]) {
    const Neighbour there = neighbour<MU>(g, site, FORWARD);
    const bool phase = (f.phases >> MU & 1) && there.outside;
    auto permute = [&](auto& x) {
        if (LANES > 1 && there.crossing != 0) permute_lanes(x, g.lane_orders, NO_CROSSING + there.crossing);
    };
    HalfSpinor h[VECTORS];
    Scale unit[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) {
        Spinor psi;
        unit[v].c[0] = load(there, v, psi);
        h[v] = project<MU>(psi, s);
    }
    real u[MATRIX_REALS];
    if constexpr (FORWARD) load_entries(f, g, slice_in_memory(g, site), site.parity, site.slot, MU, u);
    else load_entries(f, g, there.slice, 1 - site.parity, there.slot, MU, u);
    UNROLL for (int v = 0; v < VECTORS; v++) {
        if constexpr (STORAGE::COUNTS) permute(unit[v]);
        if constexpr (FORWARD) permute(h[v]);
        h[v] = transported<!FORWARD>(u, h[v]);
        if constexpr (!FORWARD) permute(h[v]);
        if (phase) multiply_phase(f, MU, FORWARD, h[v]);
        add_projected<MU>(sum[v], h[v], s, unit[v].c[0]);
    }
}
