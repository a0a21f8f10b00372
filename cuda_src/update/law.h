// The distribution of a link, given all others, exp(weight Re Tr U s^dagger), which depends on the group. Selected by
// the compiler's command line:
//   LAW_HEADER  the header that declares it
//   LAW         its class
//
// A law declares
//   Choice<Generator>   the choice of the rotations in GROUP::rotated by which the heatbath draws a link; its constructor
//                       takes (stream, geometry, site, mu, weight), and end() is called after the last one
//   mean<G>(s, weight)  the mean of the link
#pragma once

#include "group/group.h"
#include LAW_HEADER
