// Links by the odd site that they leave or at which they arrive: [t][x][y][z / 2][direction][which], with the
// directions t, x, y, z, and the link that leaves before the one that arrives. A link that arrives along t belongs
// to an even site of the slice before.
#pragma once

#include "arch/arch.h"

struct ByOddSite {
    static constexpr bool REACHES_BACK = true;

    static INLINE bool in_next_block(int parity, int mu) { return parity == 0 && mu == 3; }
    static INLINE unsigned place(const int (&full)[4], int parity, const int (&at)[3], int mu) {
        const bool arrives = parity == 0;
        int odd[3] = {at[0], at[1], at[2]};
        UNROLL for (int d = 0; d < 3; d++)
            if (arrives && d == mu) odd[d] = odd[d] + 1 == full[d] ? 0 : odd[d] + 1;
        return 8 * (((unsigned)odd[0] * full[1] + odd[1]) * (full[2] / 2) + odd[2] / 2) + 2 * ((mu + 1) % 4) + arrives;
    }
};
