// The derivative of an action with the clovers Q_mu_nu of a site (dirac/clover.h), given that with the hermitian part H of
// the Dirac operator, dS = Re Tr (L dH): antihermitian matrices g_mu_nu with dS = sum over mu < nu of Re Tr (g_mu_nu dQ_mu_nu),
//   g_mu_nu = -(factor / 4) sum over spins of (gamma_mu gamma_nu)_ij L_ji.
#include "arch/launch.h"
#include "dirac/clover.h"
#include "dirac/planes.h"

struct Arguments {
    Geometry geometry;
    Work work;
    const void* derivative;  // L
    void* planes;            // g
    double factor;           // kappa c_SW
};

// (re, im) += i^power times an element of a hermitian matrix.
INLINE void add_element(const real (&h)[BLOCK_REALS], int row, int column, int power, real& re, real& im) {
    const int at = row > column ? below(row, column) : row < column ? below(column, row) : row;
    const real p = h[at], q = row == column ? broadcast(0) : row > column ? h[at + 1] : -h[at + 1];
    re = plus_re(power, scalar(1), re, p, q);
    im = plus_im(power, scalar(1), im, p, q);
}

template <int MU, int NU> INLINE void reduce_plane(const Arguments& a, Site site) {
    compute_again(site.slot), compute_again(site.t);  // or else L would be kept for all planes
    constexpr int N = GROUP::N;
    const Geometry& g = a.geometry;
    real c[PLANE_REALS];
    UNROLL for (int i = 0; i < PLANE_REALS; i++) c[i] = broadcast(0);
    UNROLL for (int chirality = 0; chirality < 2; chirality++) {
        real h[BLOCK_REALS];
        STORAGE::load(g, chiral_block(a.derivative, g, site, chirality), site.slot, h);
        UNROLL for (int spin = 2 * chirality; spin < 2 * chirality + 2; spin++) {
            const SpinElement element = plane_element(MU, NU, spin);
            const int first = element.column % 2 * N, second = spin % 2 * N;
            UNROLL for (int i = 0; i < N; i++) {
                real none = broadcast(0);
                add_element(h, first + i, second + i, element.power, none, c[i]);
                UNROLL for (int j = 0; j < i; j++) {
                    const int at = below_diagonal(i, j);
                    add_element(h, first + i, second + j, element.power, c[at], c[at + 1]);
                }
            }
        }
    }
    UNROLL for (int i = 0; i < PLANE_REALS; i++) c[i] = -(scalar)a.factor / 4 * c[i];
    STORAGE::store(g, plane_block(a.planes, g, slice_in_memory(g, site), site.parity, plane_number(MU, NU)), site.slot, c);
}

INLINE void clover_planes_site(const Arguments& a, const Site& site) {
    reduce_plane<0, 1>(a, site);
    reduce_plane<0, 2>(a, site);
    reduce_plane<0, 3>(a, site);
    reduce_plane<1, 2>(a, site);
    reduce_plane<1, 3>(a, site);
    reduce_plane<2, 3>(a, site);
}

SITE_KERNEL(clover_planes, clover_planes_site)
