// Plaquettes: links of one direction at sites of one parity are never in the same loop, so that no colours are needed.
#pragma once

struct Parities {
    static constexpr int DEPTH = 1, COLOURS = 0, OTHER_COLOURS = 0, ROWS_Y = 0, ROWS_Z = 0;
};
