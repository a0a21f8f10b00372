// Makes every line one step longer, by the step that begins where the line ends.
#include "../kernel.h"
#include "../transporter.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Lines lines;
    int end[3];  // from a line's first site to its last
};

INLINE void transporter_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const Away from = away(g, site, a.end);
    const GROUP::Matrix step = carried(load_line(a.lines, g, from.site, Lines::STEP), g, from);
    store_line(a.lines, g, site, Lines::LINE, product(load_line(a.lines, g, site, Lines::LINE), step));
}

SITE_KERNEL(transporter, Arguments, transporter_site)
