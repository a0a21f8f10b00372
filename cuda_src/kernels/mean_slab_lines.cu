// Lines along t through slabs of some thickness, whose links are replaced by their means, given all other links. Called
// once per line, on its first site.
#include "arch/launch.h"
#include "action/action.h"
#include "lattice/two_links.h"
#include "update/law.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    SlabLines lines;
    int thickness;
    ACTION::Coefficients action;
};

INLINE void mean_slab_lines_site(const Arguments& a, const Site& site) {
    const Geometry& g = a.geometry;
    const real weight = broadcast(ACTION::weight(a.action));
    GROUP::Matrix line = GROUP::one();
    Site at = site;
    ROLLED
    for (int n = 0; n < a.thickness; n++) {
        const GROUP::Matrix s = ACTION::template staples<GROUP, false>(a.links, g, at, 3, a.action);
        line = GROUP::product(line, LAW::mean<GROUP>(s, weight));
        at.t++, at.parity = 1 - at.parity;
    }
    a.lines.store(g, site, site.t / a.thickness, line);
}

SITE_KERNEL(mean_slab_lines, mean_slab_lines_site)
