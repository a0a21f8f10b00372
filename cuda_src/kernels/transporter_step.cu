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
    const Geometry& g = a.geometry;
    GROUP::Matrix sum = GROUP::zero();
    ROLLED
    for (int p = 0; p < a.paths; p++) {
        GROUP::Matrix line = GROUP::one();
        int steps[3] = {0, 0, 0};
        ROLLED
        for (int i = 0; i < a.length; i++) {
            const int code = a.path[p][i], mu = code < 0 ? -1 - code : code;
            UNROLL for (int d = 0; d < 3; d++) steps[d] -= d == mu && code < 0;
            const Displaced from = displaced(g, site, steps);
            const GROUP::Link u = brought_from(from, g, load_link(a.links, g, from.site, mu));
            line = code < 0 ? GROUP::multiply_adjoint(line, u) : GROUP::multiply(line, u);
            UNROLL for (int d = 0; d < 3; d++) steps[d] += d == mu && code >= 0;
        }
        GROUP::add(sum, line);
    }
    store_line(a.steps, g, site, GROUP::scaled(sum, scalar(1) / (scalar)a.paths));
}

SITE_KERNEL(transporter_step, transporter_step_site)
