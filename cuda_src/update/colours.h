// The colouring of the lattice: which sites are updated at the same time.
//
// All links of one direction mu at the sites of one colour are updated simultaneously. This is allowed if no loop of
// the action contains two of them. gauge_mc/updates/checks.py checks it with the kernels themselves.
//
// The compiler's command line selects the colouring:
//   COLOURING_HEADER  the header that declares it
//   COLOURING         its class
//
// The class declares
//   DEPTH              the reach of the loops for which the colouring is made: the largest distance along any axis
//                      between two links of a loop, in links
//   COLOURS            the number of colours if all extents of the lattice are multiples of 4; 0 if the only colours
//                      are the two parities
//   OTHER_COLOURS      the number of colours on other lattices
//   ROWS_Y, ROWS_Z     the distances along y and z between the rows of sites that a launch visits (see below); 0 if it
//                      must visit every site and test its colour
//
// If there are colours, an object is made from the extents, mu and the number of colours, and has the functions
//   colour(x)          the colour of the site x
//   sites()            the number of sites for which a slot of a launch stands
//   move(x, c, n)      change x from the slot's site to the n-th of these sites of colour c; false if there is none
//
// If ROWS_Y > 0 and all lanes have the same colour, a launch need not visit every site. It visits one row of sites
// out of ROWS_Y along y and ROWS_Z along z, and each slot of such a row stands for sites() sites of one colour.
//
// tests/updates/test_colours.py checks all colourings by brute force.
#pragma once

#include "arch/launch.h"
#include "lattice/geometry.h"
#include COLOURING_HEADER

// Call body(site, lanes) for every site of this slot that has the launch's colour, a.work.colour. `lanes` masks the
// lanes in which the site has that colour. In a launch on one parity (a.work.parity < 2) all lanes have the same colour,
// and only rows of sites are visited, as described above.
template <class COLOURS = COLOURING, class A, class Body>
INLINE void for_colour(const A& a, const Site& slot, Body body) {
    const Geometry& g = a.geometry;
    const Work& w = a.work;
    const COLOURS colours = {g.full, w.mu, w.colours};
    const int t = lattice_t(g, slot.t);
    if constexpr (COLOURS::ROWS_Y > 0) {
        if (w.parity < 2) {
            Site s = slot;
            if (!launched_row(w, s)) return;
            const int x[4] = {s.x, s.y, s.z, t};
            ROLLED for (int n = 0; n < colours.sites(); n++) {
                int to[4] = {x[0], x[1], x[2], t};
                const bool found = colours.move(to, w.colour, n);  // leaving here would make nvcc spill registers
                s.x = to[0], s.y = to[1], s.z = to[2];
                s.parity = (s.x + s.y + s.z + t) & 1;
                s.slot = (s.z * (int)g.y.divisor + s.y) * (int)g.half_x.divisor + (s.x >> 1);
                if (found) body(s, everywhere(true));
            }
            return;
        }
    }
    const int at[3] = {slot.x, slot.y, slot.z};
    const word number = lane_numbers(site_in_slice(g.full, at), g.lane_site);
    const mask lanes = lanes_where(number, [&](unsigned n) {
        const int x[4] = {(int)(n % g.full[0]), (int)(n / g.full[0] % g.full[1]), (int)(n / g.full[0] / g.full[1]), t};
        return colours.colour(x) == w.colour;
    });
    if (any_lane(lanes)) body(slot, lanes);
}
