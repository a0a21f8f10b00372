// Two-link operators of slabs, averaged over the lines of several configurations of the slabs. Called once per pair of
// lines, on the first site of one of them.
#include "arch/launch.h"
#include "lattice/two_links.h"

struct Arguments {
    Geometry geometry;
    Work work;
    SlabLines lines;            // of the first configuration
    unsigned long long stride;  // bytes from the lines of one configuration to those of the next
    int count;                  // number of configurations
    int end[3];                 // vector from one line to the other
    int thickness;
    TwoLinks operators;
};

INLINE void two_links_site(const Arguments& a, const Site& site) {
    constexpr int N = GROUP::N;
    const Geometry& g = a.geometry;
    const Displaced from = displaced(g, site, a.end);
    const int slab = site.t / a.thickness;
    // N rows at a time, for one row of the first line, because all rows do not fit into registers.
    ROLLED
    for (int row = 0; row < N; row++) {
        PairRow sum[N];
        UNROLL for (int c = 0; c < N; c++)
            UNROLL for (int i = 0; i < PAIRS; i++) sum[c].re[i] = sum[c].im[i] = broadcast(0);
        SlabLines lines = a.lines;
        ROLLED
        for (int n = 0; n < a.count; n++) {
            const PairRow near_line = entries_of(lines.load(g, site, slab));
            const PairRow far_line = entries_of(brought_from(from, g, lines.load(g, from.site, slab)));
            UNROLL for (int b = 0; b < N; b++) {
                real re = near_line.re[b], im = near_line.im[b];
                UNROLL for (int other = 1; other < N; other++) {
                    re = row == other ? near_line.re[other * N + b] : re;
                    im = row == other ? near_line.im[other * N + b] : im;
                }
                UNROLL for (int c = 0; c < N; c++)
                    UNROLL for (int d = 0; d < N; d++) {
                        const real far_re = far_line.re[c * N + d], far_im = far_line.im[c * N + d];
                        real& to_re = sum[c].re[b * N + d];
                        real& to_im = sum[c].im[b * N + d];
                        to_re = to_re + re * far_re + im * far_im;
                        to_im = to_im + im * far_re - re * far_im;
                    }
            }
            lines.data = (packet*)((char*)lines.data + a.stride);
        }
        const real weight = broadcast(scalar(1) / (scalar)a.count);
        UNROLL for (int c = 0; c < N; c++) {
            UNROLL for (int i = 0; i < PAIRS; i++)
                sum[c].re[i] = sum[c].re[i] * weight, sum[c].im[i] = sum[c].im[i] * weight;
            a.operators.store(g, site, slab, row * N + c, sum[c]);
        }
    }
}

SITE_KERNEL(two_links, two_links_site)
