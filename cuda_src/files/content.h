// The content of a field of links, selected by the compiler's command line:
//   CONTENT  GroupLinks, the components of the group as in all other kernels; or Matrices, all entries, so that the
//            numbers of a file are kept exactly, also those that follow from others
#pragma once

#include "group/group.h"

constexpr int ENTRIES = 2 * GROUP::N * GROUP::N;  // reals of a matrix
typedef double_real Entries[ENTRIES];

// `as_stored`: the first entries are the components in the order in which the group stores them.
struct GroupLinks {
    static constexpr int C = GROUP::COMPONENTS;
    typedef GROUP::Field Field;

    static INLINE void load(const Field& f, const Geometry& g, packet_index first, bool as_stored, Entries& m) {
        real c[C];
        double_real exact[C];
        f.read(g, first, 0, c);
        UNROLL for (int i = 0; i < C; i++) exact[i] = to_double(c[i]);
        if (as_stored) {
            UNROLL for (int i = 0; i < ENTRIES; i++) m[i] = exact[i < C ? i : 0];
        } else {
            GROUP::entries(exact, m);
        }
    }
    static INLINE void store(const Field& f, const Geometry& g, packet_index first, bool as_stored, const Entries& m) {
        real c[C];
        double_real exact[C];
        GROUP::components(m, exact);
        UNROLL for (int i = 0; i < C; i++)
            c[i] = from_double(as_stored && i < ENTRIES ? m[i < ENTRIES ? i : 0] : exact[i]);
        f.write(g, first, c);
    }
};

struct Matrices {
    static constexpr int C = (ENTRIES + 3) / 4 * 4;  // whole packets
    typedef Links<C> Field;

    static INLINE void load(const Field& f, const Geometry& g, packet_index first, bool, Entries& m) {
        real c[C];
        f.read(g, first, 0, c);
        UNROLL for (int i = 0; i < ENTRIES; i++) m[i] = to_double(c[i]);
    }
    static INLINE void store(const Field& f, const Geometry& g, packet_index first, bool, const Entries& m) {
        real c[C];
        UNROLL for (int i = 0; i < C; i++) c[i] = from_double(m[i < ENTRIES ? i : 0]);
        f.write(g, first, c);
    }
};
