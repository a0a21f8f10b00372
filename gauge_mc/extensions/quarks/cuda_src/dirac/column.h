// Selected by the compiler's command line:
//   COLUMN  the extent of the fifth direction if a thread keeps its numbers of all slices in registers, else 0
#pragma once

static_assert(COLUMN >= 0, "an extent");
