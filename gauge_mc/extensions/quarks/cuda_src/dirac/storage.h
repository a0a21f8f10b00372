// How the numbers of a field are stored, selected by the compiler's command line:
//   STORAGE  Reals, as the reals of the arithmetic; or FixedPoint, as integers of 16 bits that are rounded to nearest
//
// The numbers of one parity of a time slice are a block; see load_numbers in arch/. Both declare
//   Number                the type of a stored number
//   bytes(C)              bytes per site of a block with C numbers
//   unit_bytes(C)         the same for numbers between -1 and 1
//   load, store           C numbers of a slot
//   load_counts           C numbers in a unit, which is returned; it is 1 unless the type COUNTS in units
//   load_unit, store_unit the same for numbers between -1 and 1, which with ONCE are not read again soon
//   load_part, store_part K of the C numbers of a slot, from number `first` on. If the type COUNTS, gather_largest must be
//                         called for all parts of a slot before, once with `begin`; the last part is stored with `end`
//   largest_of            the largest modulus of K numbers, if the type COUNTS
//   store_part_within     store_part, given the largest modulus of the slot, which need not be gathered then
#pragma once

#include "lattice/geometry.h"

struct Reals {
    typedef scalar Number;
    static constexpr bool COUNTS = false;
    static constexpr INLINE int bytes(int c) { return c * REAL_BYTES; }
    static constexpr INLINE int unit_bytes(int c) { return c * REAL_BYTES; }

    template <int C> static INLINE void load(const Geometry& g, const char* block, int slot, real (&c)[C]) {
        load_numbers<Number, false>(block, (unsigned)g.slots, (unsigned)slot, c);
    }
    template <int C> static INLINE real load_counts(const Geometry& g, const char* block, int slot, real (&c)[C]) {
        load(g, block, slot, c);
        return broadcast(1);
    }
    template <int C> static INLINE void store(const Geometry& g, char* block, int slot, const real (&c)[C]) {
        store_numbers<Number>(block, (unsigned)g.slots, (unsigned)slot, c);
    }
    template <bool ONCE, int C> static INLINE void load_unit(const Geometry& g, const char* block, int slot, real (&c)[C]) {
        load_numbers<Number, ONCE>(block, (unsigned)g.slots, (unsigned)slot, c);
    }
    template <int C> static INLINE void store_unit(const Geometry& g, char* block, int slot, const real (&c)[C]) {
        store(g, block, slot, c);
    }
    template <int C, int K>
    static INLINE void load_part(const Geometry& g, const char* block, int slot, int first, real (&c)[K]) {
        ::load_part<Number, C>(block, (unsigned)g.slots, (unsigned)slot, first, c);
    }
    template <int C, int K> static INLINE void gather_largest(const Geometry&, char*, int, bool, const real (&)[K]) {}
    template <int C, int K>
    static INLINE void store_part(const Geometry& g, char* block, int slot, int first, bool, const real (&c)[K]) {
        ::store_part<Number, C>(block, (unsigned)g.slots, (unsigned)slot, first, c);
    }
    template <int K> static INLINE real largest_of(const real (&)[K]) { return broadcast(0); }
    template <int C, int K>
    static INLINE void store_part_within(const Geometry& g, char* block, int slot, int first, bool end, real, const real (&c)[K]) {
        store_part<C>(g, block, slot, first, end, c);
    }
};

// A number is an integer from -32767 to 32767 times a real. This is the largest modulus of the site's numbers, divided
// by 32767, and follows after the integers of the block; for numbers between -1 and 1 it is 1 / 32767.
struct FixedPoint {
    typedef fixed16 Number;
    static constexpr int MOST = 32767;
    static constexpr bool COUNTS = true;
    static constexpr INLINE int bytes(int c) { return 2 * c + 4; }
    static constexpr INLINE int unit_bytes(int c) { return 2 * c; }

    template <int C> static INLINE void load(const Geometry& g, const char* block, int slot, real (&c)[C]) {
        const real unit = load_counts(g, block, slot, c);
        UNROLL for (int i = 0; i < C; i++) c[i] = c[i] * unit;
    }
    template <int C> static INLINE real load_counts(const Geometry& g, const char* block, int slot, real (&c)[C]) {
        real unit[1];
        load_numbers<Number, false>(block, (unsigned)g.slots, (unsigned)slot, c);
        load_numbers<float, false>(units<C>(g, block), (unsigned)g.slots, (unsigned)slot, unit);
        return unit[0];
    }
    // Numbers that are all below 1e-30 are stored as zeros, since 1 / unit would overflow. A NaN makes the unit a NaN.
    template <int C> static INLINE void store(const Geometry& g, char* block, int slot, const real (&c)[C]) {
        const real largest = largest_of(c), scale = scale_of(largest);
        real n[C], unit[1] = {unit_of(largest)};
        UNROLL for (int i = 0; i < C; i++) n[i] = c[i] * scale;
        store_numbers<Number>(block, (unsigned)g.slots, (unsigned)slot, n);
        store_numbers<float>((char*)units<C>(g, block), (unsigned)g.slots, (unsigned)slot, unit);
    }
    template <int C, int K>
    static INLINE void load_part(const Geometry& g, const char* block, int slot, int first, real (&c)[K]) {
        real unit[1];
        ::load_part<Number, C>(block, (unsigned)g.slots, (unsigned)slot, first, c);
        load_numbers<float, false>(units<C>(g, block), (unsigned)g.slots, (unsigned)slot, unit);
        UNROLL for (int i = 0; i < K; i++) c[i] = c[i] * unit[0];
    }
    // The largest modulus is kept in the place of the unit until the last part is stored.
    template <int C, int K>
    static INLINE void gather_largest(const Geometry& g, char* block, int slot, bool begin, const real (&c)[K]) {
        real largest[1] = {broadcast(0)};
        if (!begin) load_numbers<float, false>(units<C>(g, block), (unsigned)g.slots, (unsigned)slot, largest);
        largest[0] = larger_or_nan(largest[0], largest_of(c));
        store_numbers<float>((char*)units<C>(g, block), (unsigned)g.slots, (unsigned)slot, largest);
    }
    template <int C, int K>
    static INLINE void store_part(const Geometry& g, char* block, int slot, int first, bool end, const real (&c)[K]) {
        real largest[1];
        load_numbers<float, false>(units<C>(g, block), (unsigned)g.slots, (unsigned)slot, largest);
        store_part_within<C>(g, block, slot, first, end, largest[0], c);
    }
    template <int C, int K>
    static INLINE void store_part_within(const Geometry& g, char* block, int slot, int first, bool end, real largest,
                                         const real (&c)[K]) {
        real n[K];
        const real scale = scale_of(largest);
        UNROLL for (int i = 0; i < K; i++) n[i] = c[i] * scale;
        ::store_part<Number, C>(block, (unsigned)g.slots, (unsigned)slot, first, n);
        if (!end) return;
        const real unit[1] = {unit_of(largest)};
        store_numbers<float>((char*)units<C>(g, block), (unsigned)g.slots, (unsigned)slot, unit);
    }
    template <bool ONCE, int C> static INLINE void load_unit(const Geometry& g, const char* block, int slot, real (&c)[C]) {
        load_numbers<Number, ONCE>(block, (unsigned)g.slots, (unsigned)slot, c);
        UNROLL for (int i = 0; i < C; i++) c[i] = c[i] * scalar(1.0 / MOST);
    }
    template <int C> static INLINE void store_unit(const Geometry& g, char* block, int slot, const real (&c)[C]) {
        real n[C];
        UNROLL for (int i = 0; i < C; i++) n[i] = c[i] * scalar(MOST);
        store_numbers<Number>(block, (unsigned)g.slots, (unsigned)slot, n);
    }
    template <int K> static INLINE real largest_of(const real (&c)[K]) {
        real largest = magnitude(c[0]);
        UNROLL for (int i = 1; i < K; i++) largest = larger_or_nan(largest, magnitude(c[i]));
        return largest;
    }

private:
    static INLINE real scale_of(real largest) {
        const mask tiny = largest < broadcast(scalar(1e-30));
        return select(tiny, broadcast(0), scalar(MOST) / select(tiny, broadcast(1), largest));
    }
    static INLINE real unit_of(real largest) {
        const mask tiny = largest < broadcast(scalar(1e-30));
        return select(tiny, broadcast(0), largest) * scalar(1.0 / MOST);
    }
    template <int C> static INLINE const char* units(const Geometry& g, const char* block) {
        return block + (size_t)(2 * C * LANES) * (unsigned)g.slots;
    }
};
