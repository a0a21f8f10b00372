// Extend every line by the transporter of one step that begins at the end of the line.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Lines lines;
    int end[3];  // vector from the first to the last site of a line
};

INLINE void transporter_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const Displaced from = displaced(g, site, a.end);
    const GROUP::Matrix step = brought_from(from, g, load_line(a.lines, g, from.site, Lines::STEP));
    store_line(a.lines, g, site, Lines::LINE, GROUP::product(load_line(a.lines, g, site, Lines::LINE), step));
}

SITE_KERNEL(transporter, transporter_site)
