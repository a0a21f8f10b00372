// Links by the site that they leave: [t][z][y][x][mu].
#pragma once

#include "arch/arch.h"

struct BySite {
    static constexpr bool REACHES_BACK = false, SITES_TOGETHER = true;

    static INLINE bool in_next_block(int, int) { return false; }
    static INLINE unsigned place(const int (&full)[4], int, const int (&at)[3], int mu) {
        return 4 * (((unsigned)at[2] * full[1] + at[1]) * full[0] + at[0]) + mu;
    }
};
