// Lines along t that begin at every site, made one link longer at their beginning: L'(x) = U_3(x) L(x+t). The lines are
// two directions of a field, of which one is read and the other one written.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links, lines;
    int source, target;  // directions; with source < 0 the lines are one link long
};

INLINE void lengthen_time_lines_site(const Arguments& a, const Site& site) {
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    const packet_index here = Field::place(g, site);
    GROUP::Link line = GROUP::load(a.links, g, here + Field::direction(g, site.parity, 3));
    if (a.source >= 0) {
        const packet_index there = here + Field::step(g, site, 3, true).packets;
        line = longer(line, GROUP::load(a.lines, g, there + Field::direction(g, 1 - site.parity, a.source)));
    }
    GROUP::store(a.lines, g, here + Field::direction(g, site.parity, a.target), line);
}

SITE_KERNEL(lengthen_time_lines, lengthen_time_lines_site)
