// The colouring for actions with parallelograms and rectangles of 2x1 links. Two links of direction mu are in one loop
// if their sites differ by mu, nu, mu + nu, mu - nu, 2 nu, nu + rho or nu - rho. The colour is 4 layer + e:
// - Number the three directions nu != mu by k = 1, 2, 3. Then e is the exclusive or of the k whose x_nu is odd. All of
//   these steps change e, except mu and 2 nu.
// - These two change the layer,
//     x_mu mod 2 + sum over nu of b(x_nu / 2)  mod `colours` / 4,
//   where b gives different numbers to neighbouring pairs of sites along nu: 0 and 1 in turn, and 2 for the last pair if
//   the number of pairs is odd. Two layers suffice if b is only 0 or 1 for every nu, and three otherwise.
// So there are 8 colours if all extents are multiples of 4, and 12 if not.
#pragma once

#include "lattice/geometry.h"

// A launch visits the rows with even y and z; see colours.h. A slot stands for a cube of 2^3 sites at one t. The lowest
// bits of x_nu for k = 1, 2, 3 give e if they are the two bits of e and a 0, or if they are the complements of these
// three bits. Unless mu = t, the bit of t decides which of the two it is, and the cube has one site of the colour or
// none. For mu = t it has two sites or none. With two layers, it has two for every second pair of sites along x. Then
// each slot stands for one site, so that none is idle.
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
