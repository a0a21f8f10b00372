// Macros that turn the body of a kernel into a function that a device can launch.
//
//   SITE_KERNEL(name, body)      call body(arguments, site) for every site of the work
//   LINK_KERNEL(name, body)      call body(arguments, site, mu) for every site of both parities and mu < DIRECTIONS. On a
//                                GPU a block has one mu, and a thread works on an even site and then on the odd site of
//                                the same slot, whose links it has in the cache
//   SHARED_KERNEL(name, body)    body(arguments, site, share, shares) does part number `share` of the work on a site,
//                                which is divided into so many shares. Arguments have `Shares shares`, which says how;
//                                on a CPU there is one
//   SHARED_KERNEL_IN_TWO(name, body, in_two, second)
//                                the same, and if in_two, second(arguments, site, here, share, shares) once the threads of
//                                a block have done their parts of `body`. All threads of the block call it, those without
//                                a site with here = false; the work on a site must be that of one block. On a GPU
//                                BLOCKS_HAVE_MEMORY: threads of a block share BLOCK_MEMORY variables and wait_for_block()
//   SWEEP_KERNEL(name, body)     the same for updates. body<true> also stores new links in the halos
//                                of neighbouring slabs. On a GPU the macro also defines name_sweep,
//                                which runs all steps of whole sweeps in one launch
//   SUM_KERNEL(name, K, body)    body(arguments, site, real (&values)[K]) computes K values per site,
//                                which are added up over fixed parts of every slice
//   WIDE_SUM_KERNEL(name, K, body)
//                                the same for values of any size, such as squares of residuals, that may be far below 1
//                                or far above. With STRICT there are PARTS_PER_VALUE sums of each value
//
//   SLICES_SUM_KERNEL(name, SLICES, K, BLOCKS, body)
//                                a sum kernel that works on SLICES consecutive time slices at a time, so that it
//                                can keep what it has read. body(arguments, site, values) is called for the first
//                                of these slices, and calls values.add(n, k, value) once for value k of the site
//                                in slice n from there on. The work is every SLICES-th slice of one lattice. The
//                                arguments `int slices, count` are the numbers of slices to sum over and of values
//                                per site. BLOCKS is the minimum number of resident blocks on a GPU
//
// Before the macro, the kernel declares its arguments as `struct Arguments`, which begins with
// `Geometry geometry; Work work;`. That of a sum kernel also has a `double* sums`, where the partial
// sums are stored as [slice][part][K]. Python reads the declaration and fills the structure by name;
// the compiler checks that both agree on its layout.
//
// The division into parts does not depend on threads or slabs, and therefore the sums do not either.
//
// A device launches a kernel with a list of steps, with one `Arguments` per step. No step begins before
// the previous one has ended.
#pragma once

#include "lattice/geometry.h"

constexpr int DIRECTIONS = 4;

template <class A> INLINE void no_second_part(const A&, const Site&, bool, int, int) {}

#if defined(__CUDACC__) || defined(__HIP__)
#include "arch/gpu_launch.h"
#else
#include "arch/cpu_launch.h"
#endif
