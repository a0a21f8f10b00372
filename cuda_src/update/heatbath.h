// The SU(2) heatbath: random unit quaternions whose scalar part a0 has the density
// sqrt(1 - a0^2) exp(alpha a0).
#pragma once

#include "arch/maths.h"
#include "group/quaternion.h"
#include "random/stream.h"

// With delta = 1 - a0 the density is sqrt(delta (2 - delta)) exp(-alpha delta). Kennedy and Pendleton
// (Phys. Lett. 156B (1985) 393) draw a proposal from the density sqrt(delta) exp(-alpha delta), which
// takes three random numbers. They accept it with the probability sqrt(1 - delta/2), which takes a fourth.
//
// Here the proposal has a different rate: sqrt(delta) exp(-(alpha + c) delta). The ratio of the densities,
// sqrt(1 - delta/2) exp(c delta), is largest where y = 4 c (1 - delta/2) equals 1. Therefore the
// acceptance probability is sqrt(y exp(1 - y)).
//
// On average it is proportional to (alpha + c)^(3/2) sqrt(c) exp(-2 c). The derivative of the logarithm is
// 3 / (2 (alpha + c)) + 1 / (2 c) - 2, which vanishes if 2 c^2 + 2 (alpha - 1) c = alpha/2. For all alpha,
// c = 1/4 + 3/(4 n) with n = 1 + 4 alpha is a good approximation. By numerical integration, 0.1 % of the
// proposals are rejected at alpha = 10 (4 % with c = 0) and 44 % at alpha = 0 (all with c = 0), and for no alpha
// more than 3.2 % of all proposals beyond those that are rejected with the best c.
struct Proposal {
    real mean;       // 1 / (alpha + c)
    real sharpness;  // 4 c

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
        // y exp(1 - y) = (1 - x) exp(x) >= 1 - x^2 (1 + |x|)/2. This bound decides most cases without a logarithm.
        // It holds for -3 <= x <= 1 (checked numerically); x >= 1 - 4 c >= -3. For x > 1, where y < 0, both
        // sides are negative, so that nothing is accepted.
        accepted = u2 <= scalar(1) - scalar(0.5) * square(x) * (scalar(1) + larger(x, -x));
        if (any_lane(wanted & !accepted)) {
            const mask exactly = (y > broadcast(0)) & (rough_log(u2 / y) <= x);
            // Where both decide, they differ if rounding errors do; then the other lanes must not matter.
            accepted = STRICT ? accepted | exactly : exactly;
        }
        return delta;
    }
};

// The choice of rotations in the SUBGROUPS SU(2) subgroups of a link. Two random numbers per subgroup are
// drawn for the direction, and then four per proposal. Most links need at most one proposal more than
// there are subgroups, and the generator prepares that many numbers. Subgroup n draws from sub-stream n, so that a
// rejected proposal changes no numbers of the others.
template <template <int> class Generator, int SUBGROUPS> struct HeatbathChoice {
    static constexpr int DIRECTIONS = SUBGROUPS < 3 ? 3 : SUBGROUPS;  // the sub-stream of the directions

    Generator<2 * SUBGROUPS + 4 * SUBGROUPS + 4> random;
    scalar beta_over_n;
    real direction[2 * SUBGROUPS];

    INLINE HeatbathChoice(const Stream& stream, const Geometry& g, const Site& s, int mu, scalar beta_over_n)
        : random(stream, g, s, mu), beta_over_n(beta_over_n) {
        random.begin(DIRECTIONS);
        random.uniforms(direction);
    }

    INLINE void end() { random.end(); }

    // Draw 1 - a0.
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
            // The limit on attempts ends the loop if alpha is not a number. Otherwise it is reached with a
            // probability below 1e-350, since at most 44.1 % of the proposals are rejected.
            if (!any_lane(wanted)) break;
            random.uniforms(u, wanted);
        }
        return delta;
    }

    // Draw the rotation g for which g w / |w| has the heatbath's distribution.
    INLINE Quaternion operator()(int subgroup, Quaternion w) {
        // If the staples cancel, all directions are equally likely, and w may be any unit quaternion.
        w.a[0] = w.a[0] + NEVER_ZERO;
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
