// Fields of the following time slice, brought to this one along the link: F(x) <- U_3(x) F(x+t) U_3(x)^dagger, of
// directions 0, 1 and 2 of a field of algebra elements.
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    GROUP::AlgebraField source, target;
};

INLINE void move_colour_fields_site(const Arguments& a, const Site& site) {
    typedef GROUP::AlgebraField AlgebraField;
    const Geometry& g = a.geometry;
    const GROUP::Link u =
        GROUP::load(a.links, g, GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, 3));
    const packet_index here = AlgebraField::place(g, site), there = here + AlgebraField::step(g, site, 3, true).packets;
    ROLLED
    for (int i = 0; i < 3; i++) {
        const GROUP::Algebra f = a.source.load(g, there + AlgebraField::direction(g, 1 - site.parity, i));
        const GROUP::Matrix moved = GROUP::product(GROUP::matrix(u), GROUP::matrix(f));
        const GROUP::Algebra back = GROUP::traceless(GROUP::multiply_adjoint(moved, u));
        a.target.store(g, here + AlgebraField::direction(g, site.parity, i), back);
    }
}

SITE_KERNEL(move_colour_fields, move_colour_fields_site)
