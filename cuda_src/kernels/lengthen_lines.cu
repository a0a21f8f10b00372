// Lines of links along every direction, made one link longer: L(x) <- L(x) U_mu(x + length mu).
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links, lines, longer;
    int length;  // of the lines so far
};

INLINE void lengthen_lines_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        const packet_index here = GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, mu);
        const GROUP::Link line = GROUP::load(a.lines, g, here);
        const GROUP::Link next = distant_link(a.links, g, site, mu, mu, a.length, 0, 0);
        GROUP::store(a.longer, g, here, longer(line, next));
    }
}

SITE_KERNEL(lengthen_lines, lengthen_lines_site)
