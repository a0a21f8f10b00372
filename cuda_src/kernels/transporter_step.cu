// The transporter of one step, which is an average over paths.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Lines steps;
    int paths, length;
    int path[6][3];  // directions: 0, 1, 2 for x, y, z forwards and -1, -2, -3 backwards
};

INLINE void transporter_step_site(const Arguments& a, const Site& site) {
    store_line(a.steps, a.geometry, site, mean_over_paths(a.links, a.geometry, site, a.paths, a.length, a.path));
}

SITE_KERNEL(transporter_step, transporter_step_site)
