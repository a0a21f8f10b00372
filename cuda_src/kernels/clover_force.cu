// The force of an action that depends on the clovers of all sites, dS = sum over x and mu < nu of
// Re Tr (g_mu_nu(x) dQ_mu_nu(x)) with antihermitian matrices g (dirac/planes.h). Let g_nu_mu = -g_mu_nu, which goes with
// Q_nu_mu = Q_mu_nu^dagger. A plaquette is a leaf of the clovers at its four corners, so that
//   dS = sum over x and mu < nu of d Re Tr [g(x) a b c^dagger d^dagger + a g(x + mu) b c^dagger d^dagger
//                                           + a b g(x + mu + nu) c^dagger d^dagger + a b c^dagger g(x + nu) d^dagger],
//   a = U_mu(x), b = U_nu(x + mu), c = U_mu(x + nu), d = U_nu(x)
// at fixed g. If U_mu(x) occurs in this as Re Tr (U V), V is the sum over nu != mu of
//   (p - r) g(x) + g(x + mu) (p - r) + b [g(x + mu + nu) c^dagger + c^dagger g(x + nu)] d^dagger
//   - b'^dagger [a'^dagger g(x - nu) + g(x + mu - nu) a'^dagger] d',
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
    // g_mu_nu, apart from its sign if mu > nu.
    INLINE GROUP::Matrix plane(const Way& to, int odd, int mu, int nu) const {
        const Geometry& g = a.geometry;
        real c[PLANE_REALS];
        const int slice = slice_in_memory(g, site) + to.slices;
        STORAGE::load(g, plane_block(a.planes, g, slice, site.parity ^ odd, plane_number(mu, nu)), site.slot + to.slots, c);
        if (LANES > 1 && to.crossing != 0) permute_lanes(c, g.lane_orders, NO_CROSSING + to.crossing);
        return antihermitian(c);
    }
};

INLINE GROUP::Matrix sum(GROUP::Matrix a, const GROUP::Matrix& b) {
    GROUP::add(a, b);
    return a;
}

// What U_mu(x) is multiplied by in the plaquettes of a plane, for g_mu_nu without the sign if mu > nu.
INLINE GROUP::Matrix rest_of_plane(const Around& around, int mu, int nu) {
    const Geometry& g = around.a.geometry;
    const Way here = {0, 0, 0}, ahead = way(g, around.site, mu, true);
    const Way up = way(g, around.site, nu, true), down = way(g, around.site, nu, false);
    GROUP::Matrix v, staples;
    {
        const GROUP::Link c = around.link(up, 1, mu), b = around.link(ahead, 1, nu), d = around.link(here, 0, nu);
        const GROUP::Matrix backwards = GROUP::adjoint(GROUP::matrix(c));
        const GROUP::Matrix corners = sum(GROUP::multiply_adjoint(around.plane(ahead + up, 0, mu, nu), c),
                                          GROUP::product(backwards, around.plane(up, 1, mu, nu)));
        v = GROUP::multiply_adjoint(GROUP::product(GROUP::matrix(b), corners), d);
        staples = GROUP::multiply_adjoint(GROUP::multiply_adjoint(GROUP::matrix(b), c), d);
    }
    {
        const GROUP::Link a = around.link(down, 1, mu), b = around.link(ahead + down, 0, nu), d = around.link(down, 1, nu);
        const GROUP::Matrix backwards = GROUP::adjoint(GROUP::matrix(a));
        const GROUP::Matrix corners = sum(GROUP::product(backwards, around.plane(down, 1, mu, nu)),
                                          GROUP::multiply_adjoint(around.plane(ahead + down, 0, mu, nu), a));
        GROUP::add(v, GROUP::scaled(GROUP::multiply(GROUP::adjoint_times(b, corners), d), scalar(-1)));
        GROUP::add(staples, GROUP::scaled(GROUP::multiply(GROUP::adjoint_times(b, backwards), d), scalar(-1)));
    }
    GROUP::add(v, GROUP::product(staples, around.plane(here, 0, mu, nu)));
    GROUP::add(v, GROUP::product(around.plane(ahead, 1, mu, nu), staples));
    return v;
}

INLINE void clover_force_site(const Arguments& a, const Site& site) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const Around around = {a, site};
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        GROUP::Matrix v = GROUP::zero();
        ROLLED
        for (int nu = 0; nu < 4; nu++) {
            if (nu == mu) continue;
            GROUP::add(v, GROUP::scaled(rest_of_plane(around, mu, nu), scalar(mu < nu ? 0.5 : -0.5)));
        }
        const GROUP::Matrix u = GROUP::matrix(around.link({0, 0, 0}, 0, mu));
        const packet_index there = AlgebraField::place(g, site) + AlgebraField::direction(g, site.parity, mu);
        a.force.store(g, there, a.force.load(g, there) + GROUP::traceless(GROUP::product(u, v)));
    }
}

SITE_KERNEL(clover_force, clover_force_site)
