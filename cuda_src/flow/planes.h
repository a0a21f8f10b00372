// The planes of the topological charge density.
#pragma once

#include "arch/arch.h"

struct Plane {
    int mu, nu;
};

// Each plane (0, n) is followed by that of the other two directions, ordered for an even permutation:
// 01, 23, 02, 31, 03, 12. So the density is a sum over three products of successive field strengths.
INLINE Plane plane_of(int i) {
    const int n = i / 2 + 1;
    if (i % 2 == 0) return {0, n};
    return {n == 3 ? 1 : n + 1, n == 1 ? 3 : n - 1};
}
