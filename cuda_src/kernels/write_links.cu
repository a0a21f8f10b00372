// Write the links of a time slice into its block of a file, and compute checksums of the bytes.
#include "arch/launch.h"
#include "files/file_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    CONTENT::Field links;
    FileLinks file;
};

INLINE void write_link(const Arguments& a, const Site& site, int mu, Checksums& checksums) {
    const FileLinks& f = a.file;
    const packet_index first = CONTENT::Field::place(a.geometry, site) + CONTENT::Field::direction(a.geometry, site.parity, mu);
    Entries m;
    word value[MOST_WORDS] = {}, memory[MOST_WORDS];
    CONTENT::load(a.links, a.geometry, first, f.as_stored, m);
    if (!f.as_stored) check(f, a.geometry, site, mu, m);
    words_of(f, m, value);
    swap_if(f.swapped, value, memory);
    store_lane_words(f.words, places(f, a.geometry, site, mu).at, f.reals * f.real_words, memory);
    checksums.add(value, memory, mu);
}

INLINE void write_links_site(const Arguments& a, const Site& site) {
    Checksums checksums(a.file, a.geometry, site);
    ROLLED
    for (int mu = 0; mu < 4; mu++)
        if (!FILE_ORDER::in_next_block(site.parity, mu)) write_link(a, site, mu, checksums);
    if constexpr (FILE_ORDER::REACHES_BACK) {
        Site before = site;
        before.t = site.t == 0 ? a.geometry.slices - 1 : site.t - 1;
        before.parity = 1 - site.parity;
        ROLLED
        for (int mu = 0; mu < 4; mu++)
            if (FILE_ORDER::in_next_block(before.parity, mu)) write_link(a, before, mu, checksums);
    }
    checksums.end();
}

SITE_KERNEL(write_links, write_links_site)
