// The SU(2) heatbath: unit quaternions with density sqrt(1 - a0^2) exp(alpha a0) of the scalar part.
#pragma once

#include "maths.h"
#include "random/lcg.h"
#include "random/philox.h"
#include "random/ranlux.h"
#include "su2.h"

// Below this alpha Creutz's proposal is accepted more often than Kennedy and Pendleton's.
constexpr scalar CREUTZ_BELOW = scalar(1.68);

// Each proposal of delta = 1 - a0 takes three numbers, and its acceptance a fourth.
INLINE real kennedy_pendleton(real inverse_alpha, const real (&u)[4], mask& accepted) {
    const real cosine2 = scalar(0.5) - scalar(0.5) * sin_pi(u[2] - scalar(0.5));  // cos(pi u/2)^2
    const real delta = -(natural_log(u[0]) + natural_log(u[1]) * cosine2) * inverse_alpha;
    accepted = square(u[3]) <= scalar(1) - scalar(0.5) * delta;
    return delta;
}

// delta from its exponential distribution on [0, 2]; the acceptance is sqrt(1 - a0^2).
INLINE real creutz(real alpha, real inverse_alpha, const real (&u)[4], mask& accepted) {
    const real span = lanewise(scalar(-2) * alpha, [](scalar x) { return -expm1(x); });
    const real delta = lanewise(-span * u[0], [](scalar x) { return -log1p(x); }) * inverse_alpha;
    accepted = square(u[3]) <= delta * (scalar(2) - delta);
    return delta;
}

// Draws for the links of one direction, each with so many SU(2) subgroups.
template <template <int> class Generator, int SUBGROUPS> struct Heatbath {
    // Numbers for the directions, for a proposal a subgroup and for one more.
    Generator<2 * SUBGROUPS + 4 * SUBGROUPS + 4> random;
    scalar beta_over_n, n_over_beta;
    real direction[2 * SUBGROUPS];

    INLINE Heatbath(const Stream& stream, const Geometry& g, const Site& s, int mu, scalar beta_over_n)
        : random(stream, g, s, mu), beta_over_n(beta_over_n), n_over_beta(scalar(1) / beta_over_n) {
        random.begin(3);
        random.uniforms(direction);
    }

    INLINE void end() { random.end(); }

    // 1 - a0.
    INLINE real sample(real alpha, real inverse_alpha) {
        real delta = broadcast(0);
        mask wanted = everywhere(true);
        const mask broad = alpha < broadcast(CREUTZ_BELOW);
        real u[4];
        random.uniforms(u);
        for (int attempt = 0; attempt < 1000; attempt++) {
            mask accepted;
            real proposal = kennedy_pendleton(inverse_alpha, u, accepted);
            if (some_lane(wanted & broad)) {
                mask accepted_broad;
                const real other = creutz(alpha, inverse_alpha, u, accepted_broad);
                proposal = select(broad, other, proposal);
                accepted = (accepted & !broad) | (accepted_broad & broad);
            }
            delta = select(wanted & accepted, proposal, delta);
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
        const real delta = sample(beta_over_n * w.norm2() * inverse, inverse * n_over_beta);
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
