// Selected by the compiler's command line:
//   VECTORS  number of vectors that a thread treats together
//   SHARED   1 if other threads of a block load the same links for other vectors, else 0
#pragma once

static_assert(VECTORS > 0, "a thread treats a vector");
