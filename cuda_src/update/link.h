// The update of one link.
#pragma once

#include "action/action.h"
#include "group/group.h"
#include "update/colours.h"
#include "update/norms.h"

// Where kernels also store this slab's first and last `depth` slices, in the halos of neighbouring slabs. The
// addresses are shifted so that the slab's own offsets apply to them. Null: do not store there.
struct HaloTargets {
    void *first, *last;
    int last_t, depth;
};

template <class G, bool STORES_HALO>
INLINE void store_link(const typename G::Field& links, const HaloTargets& halo, const Geometry& g, const Site& site,
                       packet_index here, const typename G::Link& u) {
    G::store(links, g, here, u);
    if constexpr (STORES_HALO) {
        if (halo.first && site.t < halo.depth) G::store({(packet*)halo.first}, g, here, u);
        if (halo.last && site.t > halo.last_t - halo.depth) G::store({(packet*)halo.last}, g, here, u);
    }
}

// Update a link of direction mu with the function object that make() returns, which chooses the rotations.
// It is created after the sum over the staples, when more registers are free. On a GPU, STORES_HALO is
// false only if whole sweeps of a small lattice run in one launch. Then there are few threads, so each
// loads all staples at once.
template <class A, bool STORES_HALO, class Make>
INLINE void update_in_direction(const A& a, const ACTION::Coefficients& action, const Site& site, mask lanes, int mu,
                                Make make) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const GROUP::Matrix s = ACTION::template staples<GROUP, !STORES_HALO>(a.links, g, site, mu, action);
    const packet_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
    const GROUP::Link u = GROUP::load(a.links, g, here);
    auto choose = make();
    GROUP::Link updated = NORMS::reunitarised(GROUP::rotated(u, s, choose));
    if constexpr (COLOURING::COLOURS > 0 && LANES > 1) updated = select_lanes(lanes, updated, u);
    store_link<GROUP, STORES_HALO>(a.links, a.halo, g, site, here, updated);
    choose.end();
}

// Update the links of direction a.work.mu in these lanes.
template <class A, bool STORES_HALO, class Make>
INLINE void update_link(const A& a, const ACTION::Coefficients& action, const Site& site, mask lanes, Make make) {
    const int mu = a.work.mu;
    if constexpr (ADDRESSES_ARE_COSTLY && GROUP::N == 2) {
        if (mu == 0) update_in_direction<A, STORES_HALO>(a, action, site, lanes, 0, make);
        else if (mu == 1) update_in_direction<A, STORES_HALO>(a, action, site, lanes, 1, make);
        else if (mu == 2) update_in_direction<A, STORES_HALO>(a, action, site, lanes, 2, make);
        else update_in_direction<A, STORES_HALO>(a, action, site, lanes, 3, make);
    } else {
        update_in_direction<A, STORES_HALO>(a, action, site, lanes, mu, make);
    }
}
