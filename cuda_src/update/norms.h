// How updates bring a link back to the group, selected by the compiler's command line:
//   NORMS  RoundedNorms: rows are divided by their norms, as in version 1 of the chain. In single precision the squares of
//          the norms are then too large by 7e-8 on average, because 1 / sqrt(1 + e) is rounded to a number near 1; or
//          UnbiasedNorms: without this bias
#pragma once

#include "group/group.h"

struct RoundedNorms {
    static INLINE GROUP::Link reunitarised(const GROUP::Link& u) { return GROUP::normalised(u); }
};
struct UnbiasedNorms {
    static INLINE GROUP::Link reunitarised(const GROUP::Link& u) { return GROUP::reunitarised(u); }
};
