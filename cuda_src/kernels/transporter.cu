// Make every line one step longer, by the step that begins where the line ends.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Lines lines;
    int end[3];  // from a line's first site to its last
};

INLINE void transporter_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const Displaced from = displaced(g, site, a.end);
    const GROUP::Matrix step = brought_from(from, g, load_line(a.lines, g, from.site, Lines::STEP));
    store_line(a.lines, g, site, Lines::LINE, GROUP::product(load_line(a.lines, g, site, Lines::LINE), step));
}

SITE_KERNEL(transporter, transporter_site)
