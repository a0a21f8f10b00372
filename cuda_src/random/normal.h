// Normal random numbers from uniform ones; G. E. P. Box and M. E. Muller, Ann. Math. Stat. 29 (1958) 610.
#pragma once

#include "arch/maths.h"

// Two independent normal numbers take the place of each pair of numbers in (0, 1).
template <int N> INLINE void to_normal(real (&u)[N]) {
    static_assert(N % 2 == 0, "normal numbers come in pairs");
    UNROLL for (int i = 0; i < N; i += 2) {
        const real radius = root(scalar(-2) * natural_log(u[i])), half = u[i + 1] - scalar(0.5);
        const real s = sin_pi(half), cosine = cos_pi(half);
        u[i] = radius * (scalar(1) - scalar(2) * s * s);
        u[i + 1] = radius * scalar(2) * s * cosine;
    }
}
