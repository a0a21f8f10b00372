// Haar-random links: Gaussian random components, projected onto the group by Gram-Schmidt. The third row of SU(3)
// follows from the other two, and the last one of larger groups is divided by the determinant.
#include "arch/launch.h"
#include "group/group.h"
#include "random/normal.h"
#include "random/random.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    Stream stream;
};

INLINE void hot_site(const Arguments& a, const Site& site) {
    constexpr int C = GROUP::COMPONENTS;
    const Geometry& g = a.geometry;
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        // The last four numbers are not drawn here: RANLUX reserves them for rejected proposals.
        RANDOM<C + 4> random(a.stream, g, site, mu);
        real c[C];
        random.uniforms(c);
        random.end();
        to_normal(c);
        const packet_index here = GROUP::Field::place(g, site) + GROUP::Field::direction(g, site.parity, mu);
        a.links.write(g, here, c);
        // If two rows were nearly parallel, they are orthogonal only after the second Gram-Schmidt step.
        GROUP::store(a.links, g, here, GROUP::normalised(GROUP::normalised(GROUP::load(a.links, g, here))));
    }
}

SITE_KERNEL(hot, hot_site)
