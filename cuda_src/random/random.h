// The random number generator, selected by the compiler's command line:
//   RANDOM_HEADER  the header that declares it
//   RANDOM         its class template
//   LUXURY         what its quality level means to it, if it has levels
#pragma once

#include "random/stream.h"
#include RANDOM_HEADER
