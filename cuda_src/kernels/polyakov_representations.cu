// Sums of the traces of Polyakov lines in several representations, which end in the last slab. Called once
// per line, on its first site in this slab.
#include "arch/launch.h"
#include "group/complex.h"
#include "lattice/lines.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    TimeLines before;
    int slices;  // length of the lines in this slab
    double* sums;
};

// Sums per line: |p1|^2 - 1 for the adjoint representation, then real and imaginary parts of the traces of
// antisymmetric and symmetric tensors of two, and of symmetric tensors of three.
constexpr int REPRESENTATION_VALUES = 7;

INLINE complex trace(const GROUP::Matrix& m) { return {GROUP::trace_re(m), GROUP::trace_im(m)}; }

// From the power sums pk = Tr W^k: (p1^2 -+ p2) / 2 and (p1^3 + 3 p1 p2 + 2 p3) / 6.
INLINE void representation_site(const Arguments& a, const Site& site, real (&values)[REPRESENTATION_VALUES]) {
    Site first = site;
    first.parity = TimeLines::parity(a.geometry, site);
    const GROUP::Matrix line = GROUP::matrix(time_line(a.links, a.before, a.geometry, first, a.slices));
    const GROUP::Matrix twice = GROUP::product(line, line);
    const complex p1 = trace(line), p2 = trace(twice), p3 = trace(GROUP::product(twice, line));
    const complex square = p1 * p1, cube = square * p1, mixed = p1 * p2;
    const scalar half = scalar(0.5), sixth = scalar(1.0 / 6);
    values[0] = p1.re * p1.re + p1.im * p1.im - scalar(1);
    values[1] = half * (square.re - p2.re);
    values[2] = half * (square.im - p2.im);
    values[3] = half * (square.re + p2.re);
    values[4] = half * (square.im + p2.im);
    values[5] = sixth * (cube.re + scalar(3) * mixed.re + scalar(2) * p3.re);
    values[6] = sixth * (cube.im + scalar(3) * mixed.im + scalar(2) * p3.im);
}

SUM_KERNEL(polyakov_representations, REPRESENTATION_VALUES, representation_site)
