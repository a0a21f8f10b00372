// The number of vectors that a thread treats together, and whether the caches should keep links for others. They are
// selected by the compiler's command line: VECTORS and SHARED_LINKS.
#pragma once

static_assert(VECTORS > 0, "a thread treats a vector");
constexpr bool READ_ONCE = !SHARED_LINKS;  // whether no other vector needs a link soon
