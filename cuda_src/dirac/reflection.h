// Whether a hop multiplies its result by gamma_5, selected by the compiler's command line:
//   REFLECTION  Direct or Reflected
#pragma once

struct Direct {
    static constexpr bool reflects = false;
};

struct Reflected {
    static constexpr bool reflects = true;
};
