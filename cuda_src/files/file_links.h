// Links in the bytes of a file: positions, types of numbers, byte order, and checksums.
#pragma once

#include "files/content.h"
#include "files/crc.h"
#include "files/file_order.h"

struct FileLinks {
    unsigned* words;                  // the block of the slice, as words of 32 bits
    unsigned long long sites_before;  // number of sites in the blocks before
    int reals;                        // reals per link: all entries of a matrix, or those of its first rows
    int real_words;                   // words per real, 1 or 2
    int swapped;                      // whether the byte order is not the machine's, which is little endian
    int as_stored;                    // whether the reals are the components that the group stores
    const int* lane_origin;           // [LANES][3]: first site of each lane's sub-lattice
    unsigned* results;                // [COPIES][RESULTS], see below
    int checksums;                    // a sum of the numbers below
    double tolerance;                 // largest deviation of a link from the group
};

// Checksums to compute.
constexpr int WORD_SUM = 1;       // the sum of all words
constexpr int SITE_CRC = 2;       // the CRC-32 of every site, rotated by its number modulo 29 and 31, combined by xor
constexpr int ROTATED_WORDS = 4;  // the same for every word

// Results. Sites spread them over several copies, so that threads do not wait for each other.
constexpr int COPIES = 32, RESULTS = 5;
// The deviation is the largest square of one, as the bits of a number in single precision.
constexpr int SUM_RESULT = 0, FIRST_RESULT = 1, SECOND_RESULT = 2, DEVIATION_RESULT = 4;
constexpr int BAD_RESULT = 3;  // 2^32 - 1 - the smallest number, in the order of BySite, of a link outside the group

// Word positions of a link in the file, for every lane.
struct Places {
    unsigned long long at[LANES];
};

// Return the coordinates of a lane's site in the lattice.
INLINE void coordinates(const FileLinks& f, const Site& s, int lane, int (&at)[3]) {
    at[0] = s.x, at[1] = s.y, at[2] = s.z;
    if constexpr (LANES > 1) UNROLL for (int d = 0; d < 3; d++) at[d] += f.lane_origin[3 * lane + d];
}

INLINE Places places(const FileLinks& f, const Geometry& g, const Site& s, int mu) {
    Places p;
    for (int lane = 0; lane < LANES; lane++) {
        int at[3];
        coordinates(f, s, lane, at);
        const unsigned number = FILE_ORDER::place(g.full, s.parity, at, mu);
        p.at[lane] = (unsigned long long)number * (f.reals * f.real_words);
    }
    return p;
}

constexpr int MOST_WORDS = 2 * ENTRIES;  // words per link in double precision

// The checksums of one site's links.
class Checksums {
    const FileLinks& f;
    unsigned* const results;
    word crc = word{} - 1;
    unsigned long long first[LANES];  // number of the site in the file

    static INLINE word rotated(word w, word turns) { return w << turns | w >> ((32 - turns) & 31); }

    INLINE word turns(const unsigned long long (&number)[LANES], unsigned factor, unsigned offset, int period) const {
        word n = {};
        for (int lane = 0; lane < LANES; lane++)
            set_lane(n, lane, (unsigned)((number[lane] * factor + offset) % period));
        return n;
    }

public:
    INLINE Checksums(const FileLinks& f, const Geometry& g, const Site& s)
        : f(f), results(f.results + s.slot % COPIES * RESULTS) {
        for (int lane = 0; lane < LANES; lane++) {
            int at[3];
            coordinates(f, s, lane, at);
            first[lane] = f.sites_before + site_in_slice(g.full, at);
        }
    }
    // Add a link, given its words in the order of the file, as numbers and as they are in memory.
    INLINE void add(const word (&value)[MOST_WORDS], const word (&memory)[MOST_WORDS], int mu) {
        const int count = f.reals * f.real_words;
        if (f.checksums & WORD_SUM) {
            word sum = {};
            UNROLL for (int i = 0; i < MOST_WORDS; i++)
                if (i < count) sum = sum + value[i];
            add_atomically(results + SUM_RESULT, lane_add(sum));
        }
        if (f.checksums & SITE_CRC) {
            ROLLED for (int i = 0; i < count; i++) crc = crc_after(crc, memory[i]);
        }
        if (f.checksums & ROTATED_WORDS) {
            word one = {}, two = {};
            word turn_one = turns(first, 4 * count, mu * count, 29), turn_two = turns(first, 4 * count, mu * count, 31);
            ROLLED for (int i = 0; i < count; i++) {
                one = one ^ rotated(value[i], turn_one);
                two = two ^ rotated(value[i], turn_two);
                turn_one = next_turn(turn_one, 29);
                turn_two = next_turn(turn_two, 31);
            }
            xor_atomically(results + FIRST_RESULT, lane_xor(one));
            xor_atomically(results + SECOND_RESULT, lane_xor(two));
        }
    }
    // Add the CRC of the site, after its four links.
    INLINE void end() {
        if (f.checksums & SITE_CRC) {
            const word site = ~crc;
            xor_atomically(results + FIRST_RESULT, lane_xor(rotated(site, turns(first, 1, 0, 29))));
            xor_atomically(results + SECOND_RESULT, lane_xor(rotated(site, turns(first, 1, 0, 31))));
        }
    }

private:
    static INLINE word next_turn(word turn, unsigned period) {
        const word next = turn + 1;
        return next - period * (word)((next == period) & 1);
    }
};

// Convert entries to words in the order of the file.
INLINE void words_of(const FileLinks& f, const Entries& m, word (&value)[MOST_WORDS]) {
    if (f.real_words == 1) {
        UNROLL for (int i = 0; i < ENTRIES; i++) value[i] = float_bits(m[i]);
    } else {
        UNROLL for (int i = 0; i < ENTRIES; i++) {
            word low, high;
            double_bits(m[i], low, high);
            value[2 * i] = f.swapped ? high : low;
            value[2 * i + 1] = f.swapped ? low : high;
        }
    }
}
// The inverse of words_of.
INLINE void entries_of(const FileLinks& f, const word (&value)[MOST_WORDS], Entries& m) {
    if (f.real_words == 1) {
        UNROLL for (int i = 0; i < ENTRIES; i++) m[i] = double_of_float(value[i]);
    } else {
        UNROLL for (int i = 0; i < ENTRIES; i++) {
            const word one = value[2 * i], two = value[2 * i + 1];
            m[i] = f.swapped ? double_of_bits(two, one) : double_of_bits(one, two);
        }
    }
}
INLINE void swap_if(bool swapped, const word (&from)[MOST_WORDS], word (&to)[MOST_WORDS]) {
    UNROLL for (int i = 0; i < MOST_WORDS; i++) to[i] = swapped ? swap_bytes(from[i]) : from[i];
}

// Return the square of the largest deviation of a matrix from its group: of scalar products of its first rows, and of
// the last row from the one that follows from them. The result is a NaN or too large if an entry is a NaN.
INLINE real deviation(const real (&m)[ENTRIES]) {
    constexpr int N = GROUP::N, LAST = 2 * N * (N - 1);
    real exact[ENTRIES], worst = broadcast(0);
    UNROLL for (int i = 0; i < ENTRIES; i++) exact[i] = m[i];
    GROUP::complete(exact);
    UNROLL for (int i = LAST; i < ENTRIES; i += 2)
        worst = larger_or_nan(worst, square(m[i] - exact[i]) + square(m[i + 1] - exact[i + 1]));
    UNROLL for (int a = 0; a < N - 1; a++)
        UNROLL for (int b = 0; b <= a; b++) {
            real re = broadcast(a == b ? -1 : 0), im = broadcast(0);
            UNROLL for (int i = 0; i < 2 * N; i += 2) {
                const real p = m[2 * N * a + i], q = m[2 * N * a + i + 1], r = m[2 * N * b + i], s = m[2 * N * b + i + 1];
                re = re + p * r + q * s;
                im = im + q * r - p * s;
            }
            worst = larger_or_nan(worst, square(re) + square(im));
        }
    return worst;
}

RARE void report(const FileLinks& f, const Geometry& g, const Site& site, int mu, real found) {
    unsigned* const results = f.results + site.slot % COPIES * RESULTS;
    for (int lane = 0; lane < LANES; lane++) {
        int at[3];
        coordinates(f, site, lane, at);
        const unsigned number = 4 * site_in_slice(g.full, at) + mu;
        if (!(lane_of(found, lane) <= f.tolerance * f.tolerance)) max_atomically(results + BAD_RESULT, ~number);
    }
}

// Report a link if its matrix is not in the group.
INLINE void check(const FileLinks& f, const Geometry& g, const Site& site, int mu, const Entries& entries) {
    real m[ENTRIES];
    UNROLL for (int i = 0; i < ENTRIES; i++) m[i] = from_double(entries[i]);
    const real found = deviation(m), limit = broadcast((scalar)(f.tolerance * f.tolerance));
    raise_largest(f.results + site.slot % COPIES * RESULTS + DEVIATION_RESULT, found);
    if (any_lane(select(found <= limit, broadcast(0), broadcast(1)) > broadcast(0))) report(f, g, site, mu, found);
}
