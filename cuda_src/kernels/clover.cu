// Sums of the action density, in which planes with direction t have the weight `along_t`, and of the topological charge
// density. The field strength is that of the clover,
//   F_mu_nu(x) = P(sum of the four plaquettes around x) / 4,
// where P is the traceless antihermitian part. The values of a site are
//   sum over the planes of Re Tr (1 - U_p), of the plaquettes that begin at the site,
//   sum over the planes of -Tr F_mu_nu F_mu_nu,
//   -Tr (F_01 F_23 - F_02 F_13 + F_03 F_12).
// The largest Re Tr (1 - U_p) of every slice is found as well.
#include "arch/launch.h"
#include "flow/planes.h"
#include "lattice/clover.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    double along_t;
    unsigned* largest;  // as bits of a float
    double* sums;
};

INLINE void clover_site(const Arguments& a, const Site& site, real (&values)[3]) {
    real plaquettes = broadcast(0), energy = broadcast(0), charge = broadcast(0), largest = broadcast(0);
    GROUP::Algebra before = {};
    ROLLED
    for (int i = 0; i < 6; i++) {
        const Plane plane = plane_of(i);
        real plaquette;
        auto traceless = [](const GROUP::Matrix& m) { return GROUP::traceless(m); };
        const GROUP::Algebra f = clover_of(a.links, a.geometry, site, plane.mu, plane.nu, traceless, plaquette);
        const scalar weight = (scalar)(plane.mu == 3 || plane.nu == 3 ? a.along_t : 1);
        plaquettes = plaquettes + weight * plaquette;
        largest = larger(largest, plaquette);
        energy = energy + weight * GROUP::overlap(f, f);
        if (i % 2 == 1) charge = charge + GROUP::overlap(before, f);
        before = f;
    }
    values[0] = plaquettes;
    values[1] = energy * scalar(1.0 / 16);
    values[2] = charge * scalar(1.0 / 16);
    raise_largest(a.largest + slice_in_memory(a.geometry, site), largest);
}

WIDE_SUM_KERNEL(clover, 3, clover_site)
