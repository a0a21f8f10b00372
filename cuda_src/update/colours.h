// Colours of sites: links of one direction at sites of one colour are updated simultaneously.
//
// Actions whose loops are plaquettes need no more than the two parities. Rectangles of 2x1 links contain two links of
// direction mu whose sites differ by mu, nu, mu + nu, mu - nu or 2 nu (up to signs), for some nu != mu. The colour
//   a x_mu + sum over nu != mu of b_nu(x_nu)  mod `colours`
// differs for them
// - with 4 colours, a = 2 and b_nu(x) = x: by 2, 1, 3, 1 and 2. It is periodic if all extents but that along mu are
//   multiples of 4, and that one is even;
// - with 6 colours, a = 3 and b_nu(x) = x + min(x, n), n = -L_nu mod 6: in the first n steps along nu b grows by 2, and
//   then by 1. So it grows by 1 or 2 in one step, by 2, 3 or 4 in two, and by a multiple of 6 around the lattice. For an
//   even L_nu >= 4, n is 0, 2 or 4 and not larger than L_nu.
// Parallelograms contain links whose sites differ by nu + rho or nu - rho as well. Number the other directions nu by
// k = 1, 2, 3. The exclusive or e of the k whose x_nu is odd is unchanged, among all these steps, by mu and 2 nu only.
// These change the layer
//   x_mu mod 2 + sum over nu of b(x_nu / 2)  mod `colours` / 4,
// where b is a colouring of the pairs of sites along nu, in which neighbours differ: 0 and 1 in turn, which needs two
// layers, and 2 for the last one if their number is odd, for three layers. So 4 layer + e is a colouring with 8 colours if
// all extents are multiples of 4, and with 12 if not.
// tests/updates/test_colours.py checks all of them by brute force.
#pragma once

#include "action/action.h"
#include "lattice/geometry.h"

// Return the colour of a site if there are parallelograms.
INLINE int colour_in_cubes(const int (&x)[4], const int (&extents)[4], int mu, int colours) {
    int odd = 0, layer = x[mu] & 1;
    UNROLL for (int d = 0; d < 4; d++) {
        const int pair = x[d] >> 1, pairs = extents[d] >> 1;
        if (d == mu) continue;
        if (x[d] & 1) odd ^= (d - mu) & 3;
        layer += (pairs & 1) && pair == pairs - 1 ? 2 : pair & 1;
    }
    return 4 * (layer % (colours / 4)) + odd;
}

// Call body(site, lanes) for the sites of a launch that have the colour of its work; `lanes` are those of them that do.
// If the work is on one parity, all lanes have the same colour, and so there are four colours. Then the launch has twice
// as many slots as there are sites of this colour, and every slot with even z stands for one of them, with this or the
// next z: along the other directions than mu there are X/4 in each row, and along x there are X/2 in every second row.
template <class A, class Body> INLINE void for_colour(const A& a, const Site& slot, Body body) {
    const Geometry& g = a.geometry;
    const Work& w = a.work;
    if (ACTION::COLOURS == 4 && w.parity < 2) {
        if (slot.z & 1) return;
        const int half_x = slot.x >> 1, t = lattice_t(g, slot.t);
        Site s = slot;
        if (w.mu == 0) {
            s.z += (w.colour + s.y + t) & 1;
            s.x = 2 * half_x + (((w.colour - s.y - s.z - t) >> 1) & 1);
        } else {
            s.z += half_x & 1;
            const int others = s.y * (1 + (w.mu == 1)) + s.z * (1 + (w.mu == 2)) + t * (1 + (w.mu == 3));
            s.x = 4 * (half_x >> 1) + ((w.colour - others) & 3);
        }
        s.parity = (s.x + s.y + s.z + t) & 1;
        s.slot = (s.z * (int)g.y.divisor + s.y) * (int)g.half_x.divisor + (s.x >> 1);
        body(s, everywhere(true));
        return;
    }
    const int t = lattice_t(g, slot.t), at[3] = {slot.x, slot.y, slot.z};
    const word number = lane_numbers(site_in_slice(g.full, at), g.lane_site);
    const mask lanes = lanes_where(number, [&](unsigned n) {
        const int x[4] = {(int)(n % g.full[0]), (int)(n / g.full[0] % g.full[1]), (int)(n / g.full[0] / g.full[1]), t};
        if constexpr (ACTION::COLOURS == 8) return colour_in_cubes(x, g.full, w.mu, w.colours) == w.colour;
        int colour = 0;
        UNROLL for (int d = 0; d < 4; d++) {
            const int longer = (w.colours - g.full[d] % w.colours) % w.colours;
            if (d == w.mu) colour += w.colours / 2 * x[d];
            else colour += w.colours == 4 ? x[d] : x[d] + (x[d] < longer ? x[d] : longer);
        }
        return colour % w.colours == w.colour;
    });
    if (any_lane(lanes)) body(slot, lanes);
}
