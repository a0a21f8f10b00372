// The colours of parallelograms, next to rectangles of 2x1 links. Two links of direction mu whose sites differ by mu, nu,
// mu + nu, mu - nu, 2 nu, nu + rho or nu - rho are in a loop. Number the other directions nu by k = 1, 2, 3. The
// exclusive or e of the k whose x_nu is odd is unchanged, among all these steps, by mu and 2 nu only. These change the
// layer
//   x_mu mod 2 + sum over nu of b(x_nu / 2)  mod `colours` / 4,
// where b is a colouring of the pairs of sites along nu, in which neighbours differ: 0 and 1 in turn, which needs two
// layers, and 2 for the last one if their number is odd, for three layers. So 4 layer + e is a colouring with 8 colours if
// all extents are multiples of 4, and with 12 if not.
#pragma once

#include "lattice/geometry.h"

// The rows of the work have even y and z, and a slot stands for 2^4 sites with one t. The bits of
// x_nu with k = 1, 2, 3 give e if they are those of e and 0, or their complements. Unless mu = t, that of t decides.
// Else there are two sites, or none; with two layers there are some for every second pair along x, and a slot stands
// for one.
struct Cubes {
    static constexpr int DEPTH = 2, COLOURS = 8, OTHER_COLOURS = 12, ROWS_Y = 2, ROWS_Z = 2;

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
