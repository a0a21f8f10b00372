// Partial sums that sum kernels have stored, [slice][part][value][level], and their sums over a slice, in which parts
// are added in their order. Values of wide sums with STRICT have several levels, the largest first.
#pragma once

#include "lattice/geometry.h"

struct PartialSums {
    const double* data;
    int parts, values, levels;
};

constexpr int LOADS_AT_A_TIME = 32;

// The sum of the numbers n of all parts of a slice, each of which has so many.
INLINE double sum_of_parts(const double* slice, int parts, int numbers, int n) {
    const double* const first = slice + n;
    double sum = 0;
    ROLLED for (int i = 0; i < parts; i += LOADS_AT_A_TIME) {
        double part[LOADS_AT_A_TIME];
        UNROLL for (int j = 0; j < LOADS_AT_A_TIME; j++)
            part[j] = i + j < parts ? first[(long long)(i + j) * numbers] : 0.0;
        UNROLL for (int j = 0; j < LOADS_AT_A_TIME; j++) sum += part[j];  // never -0, so that + 0 changes nothing
    }
    return sum;
}

// The sum of a value over a slice.
INLINE double sum_of_slice(const PartialSums& s, int slice, int value) {
    const int numbers = s.values * s.levels;
    const double* const data = s.data + (long long)slice * s.parts * numbers;
    double sum = sum_of_parts(data, s.parts, numbers, value * s.levels + s.levels - 1);
    ROLLED for (int level = s.levels - 2; level >= 0; level--)
        sum += sum_of_parts(data, s.parts, numbers, value * s.levels + level);
    return sum;
}
