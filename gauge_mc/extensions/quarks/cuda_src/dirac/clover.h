// The clover term of Sheikholeslami and Wohlert (Nucl. Phys. B259 (1985) 572). In the convention of hep-lat/9609035, with
// M = 2 kappa (D_W + m0 + c_SW (i / 4) sum over mu, nu of sigma_mu_nu F_mu_nu) and sigma_mu_nu = (i / 2) [gamma_mu, gamma_nu],
// it is
//   (i / 2) kappa c_SW sum over mu, nu of sigma_mu_nu F_mu_nu = -kappa c_SW sum over mu < nu of gamma_mu gamma_nu F_mu_nu,
//   F_mu_nu = (Q - Q^dagger) / 8,
// where Q is the sum of the four plaquettes around the site. F_mu_nu is antihermitian.
#pragma once

#include "dirac/block.h"
#include "lattice/clover.h"
#include "lattice/two_links.h"

// All entries of a matrix, [row][column][re, im].
struct General {
    real e[2 * GROUP::N * GROUP::N];
};
INLINE General operator+(const General& a, const General& b) {
    General sum;
    UNROLL for (int i = 0; i < 2 * GROUP::N * GROUP::N; i++) sum.e[i] = a.e[i] + b.e[i];
    return sum;
}
INLINE General general(const GROUP::Matrix& m) {
    real c[GROUP::MATRIX_COMPONENTS];
    General all;
    GROUP::pack(m, c);
    expand(c, all.e);
    return all;
}

// The row `spin` of gamma_mu gamma_nu has one element that is not 0, i^power in the column `column`.
struct SpinElement {
    int column, power;
};
INLINE constexpr SpinElement plane_element(int mu, int nu, int spin) {
    const int middle = gamma_column(mu, spin);
    return {gamma_column(nu, middle), (gamma_power(mu, spin) + gamma_power(nu, middle)) & 3};
}

struct Clover {
    struct Coefficients {
        double factor;  // kappa c_SW
    };
    static INLINE void add(const Coefficients& a, const GROUP::Field& links, const Geometry& g, const Site& site,
                           Block (&h)[2]) {
        ROLLED
        for (int mu = 0; mu < 4; mu++) {
            ROLLED
            for (int nu = mu + 1; nu < 4; nu++) {
                real plaquette;
                auto all = [](const GROUP::Matrix& m) { return general(m); };
                const General m = clover_of(links, g, site, mu, nu, all, plaquette);
                subtract_plane(h, mu, nu, (scalar)a.factor, m);
            }
        }
    }

private:
    // Subtract factor gamma_mu gamma_nu F of one plane, given a matrix whose antihermitian part is 4 F.
    static INLINE void subtract_plane(Block (&h)[2], int mu, int nu, scalar factor, const General& m) {
        constexpr int N = GROUP::N;
        for (int spin = 0; spin < SPINS; spin++) {
            const SpinElement element = plane_element(mu, nu, spin);
            const int column = element.column, power = element.power;
            Block& block = h[spin / 2];
            for (int a = 0; a < N; a++)
                for (int b = 0; b < N; b++) {
                    const int there = 2 * (a * N + b), back = 2 * (b * N + a);
                    const real re = m.e[there] - m.e[back], im = m.e[there + 1] + m.e[back + 1];  // 8 F
                    const int i = spin % 2 * N + a, j = column % 2 * N + b;
                    block.re[i][j] = plus_re(power, -factor / 8, block.re[i][j], re, im);
                    block.im[i][j] = plus_im(power, -factor / 8, block.im[i][j], re, im);
                }
        }
    }
};
