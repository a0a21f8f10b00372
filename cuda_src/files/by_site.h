// Links by the site that they leave: [t][z][y][x][mu].
#pragma once

#include "lattice/geometry.h"

struct BySite {
    static constexpr bool REACHES_BACK = false;

    static INLINE bool in_next_block(int, int) { return false; }
    static INLINE unsigned place(const int (&full)[4], int, const int (&at)[3], int mu) {
        return 4 * site_in_slice(full, at) + mu;
    }
};
