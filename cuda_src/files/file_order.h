// The order of the links in a file, selected by the compiler's command line:
//   FILE_ORDER_HEADER  the header that declares it
//   FILE_ORDER         its class
//
// A file consists of one block per time slice. An order declares
//   in_next_block(parity, mu)              whether a link of a slice is in the block of the next slice
//   REACHES_BACK                           whether there are such links
//   place(full, parity, (x, y, z), mu)     the number of a link in its block, on a lattice with these extents
#pragma once

#include FILE_ORDER_HEADER
