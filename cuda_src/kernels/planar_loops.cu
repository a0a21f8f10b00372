// Sum of Re Tr of the rectangular loops with a side of r links along mu and one of s links along nu, for mu in space and
// nu in space, or along t, given the lines of r and of s links along every direction.
#include "arch/launch.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field lines, others;  // of r and of s links
    int r, s;
    int along_t;  // 1: nu is the direction of time; 0: nu is in space
    double* sums;
};

INLINE void planar_loops_site(const Arguments& a, const Site& site, real (&values)[1]) {
    const Geometry& g = a.geometry;
    values[0] = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 3; mu++) {
        ROLLED
        for (int nu = a.along_t ? 3 : 0; nu < (a.along_t ? 4 : 3); nu++) {
            if (nu == mu) continue;
            const GROUP::Link right = distant_link(a.others, g, site, nu, mu, a.r, 0, 0);
            const GROUP::Link top = distant_link(a.lines, g, site, mu, nu, a.s, 0, 0);
            values[0] = values[0] + GROUP::plaquette(load_link(a.lines, g, site, mu), right, top,
                                                     load_link(a.others, g, site, nu));
        }
    }
}

SUM_KERNEL(planar_loops, 1, planar_loops_site)
