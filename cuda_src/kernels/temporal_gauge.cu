// Transforms links to temporal gauge, into another field: U_mu(x) becomes V(x) U_mu(x) V(x+mu)^dagger
// with V(x, t) = U_t(x, 0) ... U_t(x, t-1). U_t is 1 then but on the last slice, where it is the
// Polyakov line. One call a line, counted at the first slice stored.
#include "../kernel.h"
#include "../transporter.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
};

INLINE void temporal_gauge_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    auto longer = [](const GROUP::Link& v, const GROUP::Link& u) {
        return GROUP::normalised(link_of(GROUP::multiply(GROUP::matrix(v), u)));
    };
    ROLLED
    for (int mu = 0; mu < 3; mu++) {
        const Offset ahead = Field::step(g, site, mu, true);
        GROUP::Link near = link_of(GROUP::one()), far = near;
        Site at = site;
        ROLLED
        for (; at.t < g.slices; at.t++) {
            const piece_index here = Field::place(g, at), place = here + Field::direction(g, at.parity, mu);
            const piece_index time = Field::direction(g, at.parity, 3), time_ahead = Field::direction(g, 1 - at.parity, 3);
            const GROUP::Link u = transformed(near, GROUP::load(a.source, g, place), far);
            GROUP::store(a.target, g, place, GROUP::normalised(u));
            near = longer(near, GROUP::load(a.source, g, here + time));
            far = longer(far, GROUP::load(a.source, g, here + time_ahead + ahead.pieces, ahead.turn));
            if (mu == 0) GROUP::store(a.target, g, here + time, at.t == g.slices - 1 ? near : link_of(GROUP::one()));
            at.parity = 1 - at.parity;
        }
    }
}

SITE_KERNEL(temporal_gauge, Arguments, temporal_gauge_site)
