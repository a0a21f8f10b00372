// The number of vectors that a thread treats together, which is selected by the compiler's command line: VECTORS.
#pragma once

static_assert(VECTORS > 0, "a thread treats a vector");
