// Colours of sites, selected by the compiler's command line:
//   COLOURING_HEADER  the header that declares them
//   COLOURING         their class
//
// Links of one direction at sites of one colour are updated simultaneously, so that no loop of the action may contain two
// of them; gauge_mc/updates/independence.py checks that with the kernels. A class of colours declares
//   DEPTH              the largest distance in any direction between two links of a loop that it is for, in links
//   COLOURS            the number of colours if all extents of the lattice are multiples of 4; 0 if there are parities only
//   OTHER_COLOURS      that on other lattices
//   ROWS_Y, ROWS_Z     the distances between the rows of the work along y and z, if all lanes have the same colour; 0 if
//                      every site must be tested
// and, with colours, is made from the extents, mu and the number of colours. colour(x) is that of a site. In launches
// with the rows of the work only, a slot stands for sites() sites of a colour: move(x, colour, n) turns the slot's x
// into the n-th of them, and returns false if it does not exist.
//
// tests/updates/test_colours.py and test_luscher_weisz.py check all of them by brute force.
#pragma once

#include "arch/launch.h"
#include "lattice/geometry.h"
#include COLOURING_HEADER

// Call body(site, lanes) for the sites of a launch that have the colour of its work; `lanes` are those of them that do.
// If the work is on one parity, all lanes have the same colour, and slots in the rows of the work stand for its sites.
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
