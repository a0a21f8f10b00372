// Links near a site, and their products along paths.
#pragma once

#include "lattice/links.h"

template <class G> struct Paths {
    typedef typename G::Field Field;
    typedef typename G::Link Link;
    const Field& links;
    const Geometry& g;
    packet_index place;
    int parity;

    INLINE Paths(const Field& field, const Geometry& geometry, const Site& site)
        : links(field), g(geometry), place(Field::place(geometry, site)), parity(site.parity) {}

    // The link of direction d at an offset of so many steps.
    INLINE Link link(int d, int steps, const Offset& o) const {
        const packet_index first = place + Field::direction(g, (parity + steps) & 1, d);
        return G::load(links, g, first + o.packets, o.crossing);
    }
    // The transporter along d, or backwards, from a site to the next; `step` is the offset between them.
    INLINE Link along(int d, bool backwards, int steps, const Offset& from, const Offset& step) const {
        if (backwards) return G::link(G::adjoint(G::matrix(link(d, steps + 1, from + step))));
        return link(d, steps, from);
    }
    static INLINE Link times(const Link& a, const Link& b) { return G::link(G::multiply(G::matrix(a), b)); }
};
