// The clover term of Sheikholeslami and Wohlert (Nucl. Phys. B259 (1985) 572) and its inverse. In the convention of
// hep-lat/9609035, with M = 2 kappa (D_W + m0 + c_SW (i / 4) sum over mu, nu of sigma_mu_nu F_mu_nu) and
// sigma_mu_nu = (i / 2) [gamma_mu, gamma_nu], it is
//   C = 1 + (i / 2) kappa c_SW sum over mu, nu of sigma_mu_nu F_mu_nu
//     = 1 - kappa c_SW sum over mu < nu of gamma_mu gamma_nu F_mu_nu,
//   F_mu_nu = (Q - Q^dagger) / 8,
// where Q is the sum of the four plaquettes around the site. F_mu_nu is antihermitian, and C is hermitian.
#include "arch/launch.h"
#include "dirac/blocks.h"
#include "lattice/clover.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    GROUP::Field links;
    void* blocks;    // C
    void* inverse;   // (C^2 + mass^2)^{-1}, or C^{-1} if the mass is 0
    double factor;   // kappa c_SW
    double mass;     // 2 kappa mu
};

constexpr int ENTRIES = 2 * GROUP::N * GROUP::N;

// All entries of a matrix, [row][column][re, im].
struct General {
    real e[ENTRIES];
};
INLINE General operator+(const General& a, const General& b) {
    General sum;
    UNROLL for (int i = 0; i < ENTRIES; i++) sum.e[i] = a.e[i] + b.e[i];
    return sum;
}
INLINE General general(const GROUP::Matrix& m) {
    real c[GROUP::MATRIX_COMPONENTS];
    General all;
    GROUP::pack(m, c);
    expand(c, all.e);
    return all;
}

// A matrix of spin and colour of one chirality.
struct Block {
    real re[BLOCK_ROWS][BLOCK_ROWS], im[BLOCK_ROWS][BLOCK_ROWS];
};

INLINE Block product(const Block& a, const Block& b) {
    Block p;
    ROLLED
    for (int i = 0; i < BLOCK_ROWS; i++)
        for (int j = 0; j < BLOCK_ROWS; j++) {
            real re = broadcast(0), im = broadcast(0);
            for (int k = 0; k < BLOCK_ROWS; k++) {
                re = re + a.re[i][k] * b.re[k][j] - a.im[i][k] * b.im[k][j];
                im = im + a.re[i][k] * b.im[k][j] + a.im[i][k] * b.re[k][j];
            }
            p.re[i][j] = re, p.im[i][j] = im;
        }
    return p;
}

// The inverse of a positive matrix by Gauss-Jordan elimination, which needs no pivoting.
INLINE Block inverse_of_positive(Block a) {
    ROLLED
    for (int k = 0; k < BLOCK_ROWS; k++) {
        const real pivot = scalar(1) / a.re[k][k];
        a.re[k][k] = broadcast(1), a.im[k][k] = broadcast(0);
        for (int j = 0; j < BLOCK_ROWS; j++) a.re[k][j] = a.re[k][j] * pivot, a.im[k][j] = a.im[k][j] * pivot;
        for (int i = 0; i < BLOCK_ROWS; i++) {
            if (i == k) continue;
            const real re = a.re[i][k], im = a.im[i][k];
            a.re[i][k] = broadcast(0), a.im[i][k] = broadcast(0);
            for (int j = 0; j < BLOCK_ROWS; j++) {
                a.re[i][j] = a.re[i][j] - (re * a.re[k][j] - im * a.im[k][j]);
                a.im[i][j] = a.im[i][j] - (re * a.im[k][j] + im * a.re[k][j]);
            }
        }
    }
    return a;
}

// x -> x (2 - a x), which squares the relative error of an inverse x of a.
INLINE Block improved(const Block& a, const Block& x) {
    Block rest = product(a, x);
    for (int i = 0; i < BLOCK_ROWS; i++)
        for (int j = 0; j < BLOCK_ROWS; j++)
            rest.re[i][j] = scalar(i == j ? 2 : 0) - rest.re[i][j], rest.im[i][j] = -rest.im[i][j];
    return product(x, rest);
}

// (a^2 + mass^2)^{-1}, or a^{-1} if the mass is 0. a need not be positive, but a^2 + mass^2 is.
INLINE Block inverse_of(const Block& a, scalar mass) {
    Block square = product(a, a);
    for (int i = 0; i < BLOCK_ROWS; i++) square.re[i][i] = square.re[i][i] + mass * mass;
    const Block inverse = inverse_of_positive(square);
    return mass != 0 ? inverse : improved(a, product(a, inverse));
}

// Store the hermitian part.
INLINE void store(const Arguments& a, void* data, const Site& site, int chirality, const Block& m) {
    const Geometry& g = a.geometry;
    real h[BLOCK_REALS];
    UNROLL for (int i = 0; i < BLOCK_ROWS; i++) {
        h[i] = m.re[i][i];
        UNROLL for (int j = 0; j < i; j++) {
            h[below(i, j)] = scalar(0.5) * (m.re[i][j] + m.re[j][i]);
            h[below(i, j) + 1] = scalar(0.5) * (m.im[i][j] - m.im[j][i]);
        }
    }
    STORAGE::store(g, chiral_block(data, g, site, chirality), site.slot, h);
}

// Subtract factor gamma_mu gamma_nu F of one plane, given a matrix whose antihermitian part is 4 F.
INLINE void subtract_plane(Block (&c)[2], int mu, int nu, scalar factor, const General& m) {
    constexpr int N = GROUP::N;
    for (int spin = 0; spin < SPINS; spin++) {
        const int middle = gamma_column(mu, spin), column = gamma_column(nu, middle);
        const int power = (gamma_power(mu, spin) + gamma_power(nu, middle)) & 3;
        Block& block = c[spin / 2];
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

INLINE void clover_term_site(const Arguments& a, const Site& site) {
    Block c[2];
    for (int chirality = 0; chirality < 2; chirality++)
        for (int i = 0; i < BLOCK_ROWS; i++)
            for (int j = 0; j < BLOCK_ROWS; j++)
                c[chirality].re[i][j] = broadcast(i == j), c[chirality].im[i][j] = broadcast(0);
    ROLLED
    for (int mu = 0; mu < 4; mu++) {
        ROLLED
        for (int nu = mu + 1; nu < 4; nu++) {
            real plaquette;
            auto all = [](const GROUP::Matrix& m) { return general(m); };
            const General m = clover_of(a.links, a.geometry, site, mu, nu, all, plaquette);
            subtract_plane(c, mu, nu, (scalar)a.factor, m);
        }
    }
    ROLLED
    for (int chirality = 0; chirality < 2; chirality++) {
        store(a, a.blocks, site, chirality, c[chirality]);
        store(a, a.inverse, site, chirality, inverse_of(c[chirality], (scalar)a.mass));
    }
}

SITE_KERNEL(clover_term, clover_term_site)
