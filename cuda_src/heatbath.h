// The SU(2) heatbath: unit quaternions with density sqrt(1 - a0^2) exp(alpha a0) of the scalar part.
#pragma once

#include "maths.h"
#include "random/lcg.h"
#include "random/philox.h"
#include "random/ranlux.h"
#include "su2.h"

// A proposal of delta = 1 - a0, whose density is sqrt(delta (2 - delta)) exp(-alpha delta), takes
// three numbers, and its acceptance a fourth. Kennedy and Pendleton propose with the density
// sqrt(delta) exp(-alpha delta) and accept with the probability sqrt(1 - delta/2). Here it is
// sqrt(delta) exp(-(alpha + c) delta), accepted with sqrt(y exp(1 - y)), y = 4 c (1 - delta/2), which
// is 1 at most. Fewest are rejected where 2 c^2 + 2 (alpha - 1) c = alpha/2. Near to that for all
// alpha is c = 1/4 + 3/(4 n) with n = 1 + 4 alpha: 0.1 % for alpha = 10, where c = 0 rejects 4 %, and
// 44 % for alpha = 0, where c = 0 rejects all.
struct Proposal {
    real mean;      // 1/(alpha + c)
    real sharpness; // 4 c

    INLINE Proposal(real alpha) {
        const real n = scalar(4) * alpha + scalar(1), n2 = square(n), m = n2 + scalar(3);
        const real share = scalar(1) / (n * m);
        mean = scalar(4) * n2 * share;
        sharpness = scalar(3) * m * share + scalar(1);
    }

    INLINE real draw(const real (&u)[4], mask wanted, mask& accepted) const {
        const real cosine2 = scalar(0.5) - scalar(0.5) * sin_pi(u[2] - scalar(0.5));  // cos(pi u/2)^2
        const real delta = -(rough_log(u[0]) + rough_log(u[1]) * cosine2) * mean;
        const real y = sharpness * (scalar(1) - scalar(0.5) * delta), x = scalar(1) - y, u2 = square(u[3]);
        // 1 - x^2 (1 + |x|)/2 <= (1 - x) exp(x) seldom leaves it open.
        accepted = u2 <= scalar(1) - scalar(0.5) * square(x) * (scalar(1) + larger(x, -x));
        if (some_lane(wanted & !accepted)) accepted = (y > broadcast(0)) & (rough_log(u2 / y) <= x);
        return delta;
    }
};

// Draws for the links of one direction, each with so many SU(2) subgroups.
template <template <int> class Generator, int SUBGROUPS> struct Heatbath {
    // Numbers for the directions, for a proposal a subgroup and for one more.
    Generator<2 * SUBGROUPS + 4 * SUBGROUPS + 4> random;
    scalar beta_over_n;
    real direction[2 * SUBGROUPS];

    INLINE Heatbath(const Stream& stream, const Geometry& g, const Site& s, int mu, scalar beta_over_n)
        : random(stream, g, s, mu), beta_over_n(beta_over_n) {
        random.begin(3);
        random.uniforms(direction);
    }

    INLINE void end() { random.end(); }

    // 1 - a0.
    INLINE real sample(real alpha) {
        const Proposal proposal(alpha);
        real delta = broadcast(0);
        mask wanted = everywhere(true);
        real u[4];
        random.uniforms(u);
        for (int attempt = 0; attempt < 1000; attempt++) {
            mask accepted;
            const real proposed = proposal.draw(u, wanted, accepted);
            delta = select(wanted & accepted, proposed, delta);
            wanted = wanted & !accepted;
            // The bound ends the loop for alpha that is not a number; chance reaches it never.
            if (!some_lane(wanted)) break;
            random.uniforms(u, wanted);
        }
        return delta;
    }

    // The rotation g for which g w / |w| is distributed as the heatbath wants.
    INLINE Quaternion operator()(int subgroup, Quaternion w) {
        // Where the staples cancel all directions are as likely: any unit quaternion serves for w.
        w.a[0] = w.a[0] + scalar(REAL_BYTES == 4 ? 1e-18 : 1e-150);
        const real inverse = inverse_root(w.norm2());
        random.begin(subgroup);
        const real delta = sample(beta_over_n * w.norm2() * inverse);
        const real length = root(larger(delta * (scalar(2) - delta), broadcast(0)));
        const real cosine = scalar(2) * direction[2 * subgroup] - scalar(1);
        const real sine = length * root(scalar(1) - square(cosine));
        const real half = direction[2 * subgroup + 1] - scalar(0.5);  // phi = 2 pi half
        const real s = sin_pi(half), c = cos_pi(half);
        const Quaternion a = {{scalar(1) - delta, sine * (scalar(1) - scalar(2) * s * s), sine * scalar(2) * s * c,
                               length * cosine}};
        return a * w.conj().times(inverse);
    }
};
