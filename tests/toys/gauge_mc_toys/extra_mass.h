// H += shift, as for another mass.
#pragma once

#include "dirac/block.h"

struct ExtraMass {
    struct Coefficients {
        double shift;
    };
    static INLINE void add(const Coefficients& a, const GROUP::Field&, const Geometry&, const Site&, Block (&h)[2]) {
        for (int chirality = 0; chirality < 2; chirality++)
            for (int i = 0; i < BLOCK_ROWS; i++) h[chirality].re[i][i] = h[chirality].re[i][i] + (scalar)a.shift;
    }
};
