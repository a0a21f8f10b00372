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
// tests/updates/test_colours.py and test_luscher_weisz.py check all of them by brute force.
#pragma once

#include "action/action.h"
#include "arch/launch.h"
#include "lattice/geometry.h"

// A class of colours is made from the extents, mu and the number of colours. colour(x) is that of a site. If launches
// have the rows of the work only, a slot stands for sites() sites of a colour: move(x, colour, n) turns the slot's x
// into the n-th of them, and returns false if it does not exist.

// The colours of rectangles. The rows have even z. For mu other than x, the X/2 slots of a row stand for the sites of a
// colour in this row and in the next one, X/4 or X/6 in each on average. For mu = x they stand for the X/2 sites in one
// of the rows that have the colour, every second or third along z.
struct Rows {
    const int (&extents)[4];
    int mu, colours;

    INLINE int colour(const int (&x)[4]) const {
        int sum = 0;
        UNROLL for (int d = 0; d < 4; d++) sum += part(d, x[d]);
        return sum % colours;
    }
    static INLINE constexpr int sites() { return 1; }
    INLINE bool move(int (&x)[4], int colour, int) const {
        if (colours == 6) return move_with_six(x, colour);
        const int half_x = x[0] >> 1;
        if (mu == 0) {
            x[2] += (colour + x[1] + x[3]) & 1;
            x[0] = 2 * half_x + (((colour - x[1] - x[2] - x[3]) >> 1) & 1);
        } else {
            x[2] += half_x & 1;
            const int others = x[1] * (1 + (mu == 1)) + x[2] * (1 + (mu == 2)) + x[3] * (1 + (mu == 3));
            x[0] = 4 * (half_x >> 1) + ((colour - others) & 3);
        }
        return true;
    }

private:
    // The number of steps along d in which the colour grows by 2.
    INLINE int longer(int d) const { return colours == 4 ? 0 : (6 - extents[d] % 6) % 6; }
    INLINE int part(int d, int x) const {
        return d == mu ? colours / 2 * x : x + (x < longer(d) ? x : longer(d));
    }
    INLINE bool move_with_six(int (&x)[4], int colour) const {
        const int half_x = x[0] >> 1;
        if (mu == 0) {
            if (!find(2, x[2] >> 1, 3, left(x, colour, 0, 2), x[2])) return false;
            x[0] = 2 * half_x + (left(x, colour, 0, 0) == 3);
            return true;
        }
        x[2] += half_x & 1;
        return find(0, half_x >> 1, 6, left(x, colour, 0, 0), x[0]);
    }
    // The colour minus the parts of all directions but these two, modulo 6.
    INLINE int left(const int (&x)[4], int colour, int but, int and_but) const {
        int sum = 0;
        UNROLL for (int d = 0; d < 4; d++)
            if (d != but && d != and_but) sum += part(d, x[d]);
        return (colour + 6 - sum % 6) % 6;
    }
    // Find the n-th place along d whose part is `rest` modulo a period, or return false if it does not exist.
    INLINE bool find(int d, int n, int period, int rest, int& x) const {
        const int sum = rest % period + n * period, twice = 2 * longer(d);
        x = sum < twice ? sum >> 1 : sum - longer(d);
        return x < extents[d] && (sum >= twice || !(sum & 1));
    }
};

// The colours of parallelograms. The rows have even y and z, and a slot stands for 2^4 sites with one t. The bits of
// x_nu with k = 1, 2, 3 give e if they are those of e and 0, or their complements. Unless mu = t, that of t decides.
// Else there are two sites, or none; with two layers there are some for every second pair along x, and a slot stands
// for one.
struct Cubes {
    const int (&extents)[4];
    int mu, colours;

    INLINE int colour(const int (&x)[4]) const {
        int e = 0, sum = x[mu] & 1;
        UNROLL for (int d = 0; d < 4; d++) {
            if (d == mu) continue;
            if (x[d] & 1) e ^= (d - mu) & 3;
            sum += b(d, x[d]);
        }
        return 4 * (sum % layers()) + e;
    }
    INLINE int sites() const { return mu == 3 && layers() == 3 ? 2 : 1; }
    INLINE bool move(int (&x)[4], int colour, int n) const {
        const int e = colour & 3, layer = colour >> 2, odd_t = x[3] & 1;
        int complement = odd_t ^ bit(e, 3);
        if (mu == 3) {
            complement = sites() == 2 ? n : (x[0] >> 1) & 1;
            if (layers() == 2) x[0] = (x[0] & ~3) | ((layer + odd_t + b(1, x[1]) + b(2, x[2])) & 1) << 1;
        }
        int along = layer;
        UNROLL for (int d = 0; d < 4; d++)
            if (d != mu) along += 2 * layers() - b(d, x[d]);
        along %= layers();
        if (along > 1 || (mu == 3 && along != odd_t)) return false;
        UNROLL for (int d = 0; d < 3; d++) x[d] = (x[d] & ~1) | (d == mu ? along : complement ^ bit(e, d));
        return true;
    }

private:
    INLINE int layers() const { return colours >> 2; }
    INLINE int b(int d, int x) const {
        const int pair = x >> 1, pairs = extents[d] >> 1;
        return (pairs & 1) && pair == pairs - 1 ? 2 : pair & 1;
    }
    INLINE int bit(int e, int d) const {
        const int k = (d - mu) & 3;
        return k == 3 ? 0 : (e >> (k - 1)) & 1;
    }
};

template <int COLOURS> struct ColoursOf { typedef Rows Type; };
template <> struct ColoursOf<8> { typedef Cubes Type; };

// Call body(site, lanes) for the sites of a launch that have the colour of its work; `lanes` are those of them that do.
// If the work is on one parity, all lanes have the same colour, and slots in the rows of the work stand for its sites.
template <class A, class Body> INLINE void for_colour(const A& a, const Site& slot, Body body) {
    const Geometry& g = a.geometry;
    const Work& w = a.work;
    const typename ColoursOf<ACTION::COLOURS>::Type colours = {g.full, w.mu, w.colours};
    const int t = lattice_t(g, slot.t);
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
    const int at[3] = {slot.x, slot.y, slot.z};
    const word number = lane_numbers(site_in_slice(g.full, at), g.lane_site);
    const mask lanes = lanes_where(number, [&](unsigned n) {
        const int x[4] = {(int)(n % g.full[0]), (int)(n / g.full[0] % g.full[1]), (int)(n / g.full[0] / g.full[1]), t};
        return colours.colour(x) == w.colour;
    });
    if (any_lane(lanes)) body(slot, lanes);
}
