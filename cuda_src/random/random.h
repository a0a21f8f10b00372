// The random number generator, selected by the compiler's command line:
//   RANDOM_HEADER  the header that declares it
//   RANDOM         its class template
//   LUXURY         the parameter of its quality level, if it has levels
#pragma once

#include "random/stream.h"
#include RANDOM_HEADER
