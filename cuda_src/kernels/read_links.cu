// Read the links of a time slice from its block of a file, compute checksums of the bytes, and look for links that
// are not in the group. If the order of the file says so, some of the links are in the block of the next slice.
#include "arch/launch.h"
#include "files/file_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    CONTENT::Field links;
    FileLinks file;
    const unsigned* next_block;
    GROUP::Field also;  // a field of the group's links to which they are written as well, or null
};

INLINE void read_links_site(const Arguments& a, const Site& site) {
    const FileLinks& f = a.file;
    const Geometry& g = a.geometry;
    Checksums checksums(f, g, site);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const unsigned* const block = FILE_ORDER::in_next_block(site.parity, mu) ? a.next_block : f.words;
        word value[MOST_WORDS], memory[MOST_WORDS] = {};
        Entries m;
        load_lane_words(block, places(f, g, site, mu).at, f.reals * f.real_words, memory);
        swap_if(f.swapped, memory, value);
        checksums.add(value, memory, mu);
        entries_of(f, value, m);
        if (f.reals < ENTRIES && !f.as_stored) {
            Entries exact;
            UNROLL for (int i = 0; i < ENTRIES; i++) exact[i] = m[i];
            GROUP::complete(exact);
            UNROLL for (int i = 0; i < ENTRIES; i++) m[i] = i < f.reals ? m[i] : exact[i];
        }
        if (!f.as_stored) check(f, g, site, mu, m);
        const packet_index first = CONTENT::Field::place(g, site) + CONTENT::Field::direction(g, site.parity, mu);
        CONTENT::store(a.links, g, first, f.as_stored, m);
        if (a.also.data) {
            const packet_index there = GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, mu);
            GroupLinks::store(a.also, g, there, false, m);
        }
    }
    checksums.end();
}

SITE_KERNEL(read_links, read_links_site)
