// The force of an action that depends on the clovers of all sites, dS = sum over x and mu < nu of
// Re Tr (g_mu_nu(x) dQ_mu_nu(x)) with antihermitian matrices g (dirac/planes.h). Let g_nu_mu = -g_mu_nu, which goes with
// Q_nu_mu = Q_mu_nu^dagger. A plaquette is a leaf of the clovers at its four corners, so that
//   dS = sum over x and mu < nu of d Re Tr [g(x) a b c^dagger d^dagger + a g(x + mu) b c^dagger d^dagger
//                                           + a b g(x + mu + nu) c^dagger d^dagger + a b c^dagger g(x + nu) d^dagger],
//   a = U_mu(x), b = U_nu(x + mu), c = U_mu(x + nu), d = U_nu(x)
// at fixed g. If U_mu(x) occurs in this as Re Tr (U V), V is the sum over nu != mu of
//   p g(x) + g(x + mu) p + b [g(x + mu + nu) c^dagger + c^dagger g(x + nu)] d^dagger
//   - r g(x) - g(x + mu) r - b'^dagger [g(x + mu - nu) a'^dagger + a'^dagger g(x - nu)] d',
//   p = b c^dagger d^dagger, r = b'^dagger a'^dagger d', where a' = U_mu(x - nu), b' = U_nu(x + mu - nu), d' = U_nu(x - nu).
// The traceless antihermitian part of U V / 2 is added to F_mu(x). The halos of the links and of g must be up to date.
#include "arch/launch.h"
#include "dirac/planes.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    const void* planes;  // g
    GROUP::AlgebraField force;
};

// The way to another site: slices, slots, and the edges of sub-lattices that are crossed.
struct Way {
    int slices, slots, crossing;
    INLINE Way operator+(const Way& other) const {
        return {slices + other.slices, slots + other.slots, crossing + other.crossing};
    }
};
INLINE Way way(const Geometry& g, const Site& s, int mu, bool forward) {
    if (mu == 3) {
        const bool wrap = s.t == (forward ? g.slices - 1 : 0);
        return {wrap ? (forward ? 1 - g.slices : g.slices - 1) : (forward ? 1 : -1), 0, 0};
    }
    const Offset step = Links<COMPONENTS_PER_PACKET>::step(g, s, mu, forward);  // whose places are slots
    return {0, (int)step.packets, step.crossing};
}

// What is read around a site.
struct Around {
    const Arguments& a;
    const Site& site;

    INLINE GROUP::Link link(const Way& to, int odd, int mu) const {
        typedef GROUP::Field Field;
        const Geometry& g = a.geometry;
        const packet_index place = Field::place(g, site) + Field::direction(g, site.parity ^ odd, mu);
        const packet_index slices = (packet_index)(to.slices * 8 * Field::PACKETS) * (packet_index)g.slots;
        return GROUP::load(a.links, g, place + slices + (packet_index)(to.slots * Field::PER_SLOT), to.crossing);
    }
    // g_mu_nu.
    INLINE GROUP::Matrix plane(const Way& to, int odd, int mu, int nu) const {
        const Geometry& g = a.geometry;
        real c[PLANE_REALS];
        const int slice = slice_in_memory(g, site) + to.slices;
        STORAGE::load(g, plane_block(a.planes, g, slice, site.parity ^ odd, plane_number(mu, nu)), site.slot + to.slots, c);
        if (LANES > 1 && to.crossing != 0) permute_lanes(c, g.lane_orders, NO_CROSSING + to.crossing);
        const scalar sign = mu < nu ? 1 : -1;
        UNROLL for (int i = 0; i < PLANE_REALS; i++) c[i] = sign * c[i];
        return antihermitian(c);
    }
};

// U_mu(x) times half of a part of V in the plaquette at x, or in the one at x - nu if it is `below`:
//   (b c d) g(x) + g(x + mu) (b c d), and then b [g(x + mu + nu) c + c g(x + nu)] d for the `corners`,
// with b, c^dagger and d^dagger as above, or -b'^dagger, a'^dagger and d', and -nu for nu. Links are loaded again for every
// part, since a GPU has too few registers to keep them.
INLINE GROUP::Algebra part_of_force(const Arguments& a, Site site, int mu, int nu, bool below, bool corners) {
    compute_again(site.slot), compute_again(site.t);
    const Around around = {a, site};
    const Way here = {0, 0, 0}, ahead = way(a.geometry, site, mu, true), aside = way(a.geometry, site, nu, !below);
    GROUP::Matrix m = GROUP::adjoint(GROUP::matrix(around.link(aside, 1, mu)));
    if (corners) {
        GROUP::Matrix sum = GROUP::product(around.plane(ahead + aside, 0, mu, nu), m);
        GROUP::add(sum, GROUP::product(m, around.plane(aside, 1, mu, nu)));
        m = sum;
    }
    const GROUP::Link b = around.link(below ? ahead + aside : ahead, !below, nu);
    m = below ? GROUP::adjoint_times(b, m) : GROUP::product(GROUP::matrix(b), m);
    const GROUP::Link d = around.link(below ? aside : here, below, nu);
    m = below ? GROUP::multiply(m, d) : GROUP::multiply_adjoint(m, d);
    if (!corners) {
        GROUP::Matrix sum = GROUP::product(m, around.plane(here, 0, mu, nu));
        GROUP::add(sum, GROUP::product(around.plane(ahead, 1, mu, nu), m));
        m = sum;
    }
    const scalar sign = below ? scalar(-0.5) : scalar(0.5);
    return sign * GROUP::traceless(GROUP::product(GROUP::matrix(around.link(here, 0, mu)), m));
}

INLINE void clover_force_site(const Arguments& a, const Site& site) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
        GROUP::Algebra force = a.force.load(g, there);
        ROLLED
        for (int nu = 0; nu < 4; nu++) {
            if (nu == mu) continue;
            ROLLED
            for (int part = 0; part < 4; part++) force = force + part_of_force(a, site, mu, nu, part & 1, part & 2);
        }
        a.force.store(g, there, force);
    }
}

SITE_KERNEL(clover_force, clover_force_site)
