// Links by the site that they leave, with z fastest: [t][x][y][z][direction], with the directions t, x, y, z.
#pragma once

#include "arch/arch.h"

struct BySiteZFirst {
    static constexpr bool REACHES_BACK = false;

    static INLINE bool in_next_block(int, int) { return false; }
    static INLINE unsigned place(const int (&full)[4], int, const int (&at)[3], int mu) {
        return 4 * (((unsigned)at[0] * full[1] + at[1]) * full[2] + at[2]) + (mu + 1) % 4;
    }
};
