// The colouring for plaquettes and rectangles of 2x1 links. Such a rectangle contains two links of direction mu whose
// sites differ by mu, nu, mu + nu, mu - nu or 2 nu (up to signs), for some nu != mu. The colour of the site x is
//   a x_mu + sum over nu != mu of b_nu(x_nu)  mod `colours`,
// which differs between these sites:
// - With 4 colours, a = 2 and b_nu(x) = x. The colours differ by 2, 1, 3, 1 and 2. The colouring is periodic if the
//   extent along mu is even and all others are multiples of 4.
// - With 6 colours, a = 3 and b_nu(x) = x + min(x, n), where n = -L_nu mod 6: b grows by 2 in each of the first n steps
//   along nu, and then by 1. So it grows by 1 or 2 in one step, by 2, 3 or 4 in two steps, and by a multiple of 6 around
//   the lattice. For an even L_nu >= 4, n is 0, 2 or 4, which is at most L_nu.
#pragma once

#include "lattice/geometry.h"

// A launch visits the rows with even z; see colours.h. Each row of X sites along x has X/2 slots. For mu = y, z or t,
// these slots stand for the sites of the colour in this row and in the row at z + 1, which are X/4 or X/6 in each on
// average. For mu = x, only every second or third row along z has sites of the colour, but X/2 of them. Then the slots
// stand for the sites of one such row.
struct Rows {
    static constexpr int DEPTH = 2, COLOURS = 4, OTHER_COLOURS = 6, ROWS_Y = 1, ROWS_Z = 2;

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
    // The number n of steps along d in which b grows by 2.
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
    // The colour minus the contributions of all directions except `but` and `and_but`, modulo 6.
    INLINE int left(const int (&x)[4], int colour, int but, int and_but) const {
        int sum = 0;
        UNROLL for (int d = 0; d < 4; d++)
            if (d != but && d != and_but) sum += part(d, x[d]);
        return (colour + 6 - sum % 6) % 6;
    }
    // Set x to the n-th coordinate along d whose contribution is `rest` modulo `period`; return false if there is none.
    INLINE bool find(int d, int n, int period, int rest, int& x) const {
        const int sum = rest % period + n * period, twice = 2 * longer(d);
        x = sum < twice ? sum >> 1 : sum - longer(d);
        return x < extents[d] && (sum >= twice || !(sum & 1));
    }
};
