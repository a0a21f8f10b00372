// The staples of links of any kind: those of a field, or decorated ones from several fields.
#pragma once

#include "group/group.h"

// Adds the upper and the lower staple along the direction nu around the link from the site to the one ahead of it.
// link(parity, kind, offset) loads a link; `side` is the kind of those along nu, `along` that of the opposite ones.
template <class Load>
INLINE void add_staples(GROUP::Matrix& sum, const Load& link, const Geometry& g, const Site& site, int nu, int side,
                        int along, const Offset& ahead) {
    const int even = site.parity, odd = 1 - even;
    const Offset up = GROUP::Field::step(g, site, nu, true), down = GROUP::Field::step(g, site, nu, false);
    GROUP::add_upper(sum, link(even, side, {0, 0}), link(odd, along, up), link(odd, side, ahead));
    GROUP::add_lower(sum, link(odd, side, down), link(odd, along, down), link(even, side, down + ahead));
}
