// The colours of rectangles of 2x1 links. These contain two links of direction mu whose sites differ by mu, nu, mu + nu,
// mu - nu or 2 nu (up to signs), for some nu != mu. The colour
//   a x_mu + sum over nu != mu of b_nu(x_nu)  mod `colours`
// differs for them
// - with 4 colours, a = 2 and b_nu(x) = x: by 2, 1, 3, 1 and 2. It is periodic if all extents but that along mu are
//   multiples of 4, and that one is even;
// - with 6 colours, a = 3 and b_nu(x) = x + min(x, n), n = -L_nu mod 6: in the first n steps along nu b grows by 2, and
//   then by 1. So it grows by 1 or 2 in one step, by 2, 3 or 4 in two, and by a multiple of 6 around the lattice. For an
//   even L_nu >= 4, n is 0, 2 or 4 and not larger than L_nu.
#pragma once

#include "lattice/geometry.h"

// The rows of the work have even z. For mu other than x, the X/2 slots of a row stand for the sites of a
// colour in this row and in the next one, X/4 or X/6 in each on average. For mu = x they stand for the X/2 sites in one
// of the rows that have the colour, every second or third along z.
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
