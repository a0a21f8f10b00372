// One stage of a Runge-Kutta step of the gradient flow in 2N storage (Williamson, J. Comput. Phys. 35 (1980) 48):
//   A <- keep A + step Z(W),    W <- exp(move A) W.
#pragma once

#include "group/group.h"

struct Stage {
    double keep, step, step_along_t, move;  // the steps of links in space, and of those along t
    int last;  // 1: A is not needed any more
};

// Where the links and A are, and where the result goes; the links of the other sites are still needed.
struct Flowing {
    GROUP::Field source, target;
    GROUP::AlgebraField momenta;
    // For adaptive steps: where the second stage stores 2 A + A_0 / 16; else null.
    GROUP::AlgebraField estimate;
};

// Move the link u, whose first packet is at `here`, given the force Z(W).
INLINE void advance(const Flowing& f, const Stage& stage, const Geometry& g, const Site& site, int mu,
                    const GROUP::Link& u, const GROUP::Algebra& force) {
    const packet_index direction = GROUP::Field::direction(g, site.parity, mu);
    const packet_index here = GROUP::AlgebraField::place(g, site) + GROUP::AlgebraField::direction(g, site.parity, mu);
    GROUP::Algebra sum = (scalar)(mu == 3 ? stage.step_along_t : stage.step) * force;
    if (stage.keep != 0) {
        const GROUP::Algebra before = f.momenta.load(g, here);
        sum = sum + (scalar)stage.keep * before;
        if (f.estimate.data) f.estimate.store(g, here, scalar(2) * sum + scalar(1.0 / 16) * before);
    }
    if (!stage.last) f.momenta.store(g, here, sum);
    GROUP::Link moved = GROUP::exponential_times((scalar)stage.move * sum, u);
    if (stage.last) moved = GROUP::reunitarised(moved);
    GROUP::store<true>(f.target, g, GROUP::Field::place(g, site) + direction, moved);
}
