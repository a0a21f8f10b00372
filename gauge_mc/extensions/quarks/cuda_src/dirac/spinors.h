// Spinor fields: any number of vectors on the sites of one parity or of both, [t][parity][vector], and then a block of
// STORAGE with the reals [colour][spin][re, im] of every site.
#pragma once

#include "dirac/gamma.h"
#include "dirac/storage.h"

struct Spinors {
    void* data;
    long long slice, parity, vector;  // distances in bytes; that between parities is 0 if there is only one
};

// The block of one vector on one parity of a slice, which is numbered among those of all replicas.
INLINE char* spinor_block(const Spinors& f, int slice, int parity, int vector) {
    return (char*)f.data + slice * f.slice + parity * f.parity + vector * f.vector;
}
INLINE Spinor load_spinor(const Spinors& f, const Geometry& g, const Site& s, int vector) {
    Spinor psi;
    STORAGE::load(g, spinor_block(f, slice_in_memory(g, s), s.parity, vector), s.slot, psi.c);
    return psi;
}
INLINE void store_spinor(const Spinors& f, const Geometry& g, const Site& s, int vector, const Spinor& psi) {
    STORAGE::store(g, spinor_block(f, slice_in_memory(g, s), s.parity, vector), s.slot, psi.c);
}
