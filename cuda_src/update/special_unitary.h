// The law of SU(N): links are drawn in the N (N - 1) / 2 SU(2) subgroups in turn (Cabibbo and Marinari, Phys. Lett. 119B
// (1982) 387).
#pragma once

#include "group/group.h"
#include "update/heatbath.h"
#include "update/mean_link.h"

struct SpecialUnitary {
    template <template <int> class Generator>
    using Choice = HeatbathChoice<Generator, GROUP::N * (GROUP::N - 1) / 2>;

    template <class G> static INLINE typename G::Matrix mean(const typename G::Matrix& s, real weight) {
        return MeanLink<G::N>::template of<G>(s, weight);
    }
};
