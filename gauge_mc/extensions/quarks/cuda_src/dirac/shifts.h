// Vectors of several shifts, with real factors.
#pragma once

#include "dirac/products.h"

constexpr int MOST_SHIFTS = 64;  // shifts that a launch can treat
