// The seeds and couplings of the replicas of a field, selected by the compiler's command line:
//   REPLICAS  OneReplica: there is one lattice, whose seed and coupling are arguments of the kernel; or
//             ManyReplicas: those of every replica are in memory
#pragma once

#include "action/action.h"
#include "random/random.h"

struct OneReplica {
    template <class A> static INLINE const Stream& stream(const A& a, const Site&) { return a.stream; }
    template <class A> static INLINE const ACTION::Coefficients& action(const A& a, const Site&) { return a.action; }
};

// The random numbers of all replicas have the same number of the sweep, and their states are adjacent.
struct ManyReplicas {
    template <class A> static INLINE Stream stream(const A& a, const Site& site) {
        Stream own = a.stream;
        UNROLL for (int i = 0; i < KEY_WORDS; i++) own.key[i] = a.keys[site.replica * KEY_WORDS + i];
        return own;
    }
    template <class A> static INLINE const ACTION::Coefficients& action(const A& a, const Site& site) {
        return a.actions[site.replica];
    }
};
