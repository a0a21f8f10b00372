// How the vectors of a site are divided among threads, which is selected by the compiler's command line:
//   VECTORS  number of vectors that a thread treats together
//   LAYERED  whether several threads may work on a site
#pragma once

static_assert(VECTORS > 0, "a thread treats a vector");
constexpr bool READ_ONCE = VECTORS == 1 && !LAYERED;  // whether the caches need not keep links
