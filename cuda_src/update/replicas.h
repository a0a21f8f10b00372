// Seeds, couplings and moves of the replicas of a field, selected by the compiler's command line:
//   REPLICAS  OneReplica: there is one lattice, whose seed, coupling and steps are arguments of the kernel; or
//             ManyReplicas: those of every replica are in memory
#pragma once

#include "lattice/geometry.h"
#include "random/stream.h"

// A kick and a drift of a replica in a launch of molecular dynamics.
struct ReplicaMove {
    double kick, drift;
    int replica, unused;
};

struct OneReplica {
    template <class A> static INLINE const Stream& stream(const A& a, const Site&) { return a.stream; }
    template <class A> static INLINE const auto& action(const A& a, const Site&) { return a.action; }
    template <class A> static INLINE const Site& moving(const A&, const Site& site) { return site; }
    template <class A> static INLINE double kick(const A& a, const Site&) { return a.kick; }
    template <class A> static INLINE double drift(const A& a, const Site&) { return a.drift; }
};

// The random numbers of all replicas have the same number of the sweep, and their states are adjacent.
struct ManyReplicas {
    template <class A> static INLINE Stream stream(const A& a, const Site& site) {
        Stream own = a.stream;
        UNROLL for (int i = 0; i < KEY_WORDS; i++) own.key[i] = a.keys[site.replica * KEY_WORDS + i];
        return own;
    }
    template <class A> static INLINE const auto& action(const A& a, const Site& site) { return a.actions[site.replica]; }

    // The n-th lattice of a launch of molecular dynamics is the replica of the n-th move; that of `site` moves.
    template <class A> static INLINE Site moving(const A& a, const Site& site) {
        Site own = site;
        own.replica = a.moves[site.replica].replica;
        return own;
    }
    template <class A> static INLINE double kick(const A& a, const Site& site) { return a.moves[site.replica].kick; }
    template <class A> static INLINE double drift(const A& a, const Site& site) { return a.moves[site.replica].drift; }
};
