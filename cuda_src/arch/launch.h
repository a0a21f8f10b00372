// From the body of a kernel to something that a device can launch.
//
//   SITE_KERNEL(name, body)      body(arguments, site) is called for every site of the work
//   SWEEP_KERNEL(name, body)     the same for updates. body<true> also stores what neighbouring slabs
//                                have copies of. On a GPU there is also name_sweep: all steps of
//                                whole sweeps in one launch, for small lattices
//   SUM_KERNEL(name, K, body)    body(arguments, site, real (&values)[K]) computes K values a site,
//                                which are added up over fixed parts of every slice
//
// The arguments are a `struct Arguments` that the kernel declares before. It begins with
// `Geometry geometry; Work work;`, and a sum kernel's has a `double* sums`, where the partial sums go:
// [slice][part][K]. Python reads the declaration and fills the structure by the names in it; the
// compiler checks that both agree on its layout.
//
// Which sites a part holds does not depend on threads or slabs, and so neither does any sum.
//
// A device launches a kernel with a list of steps, one `Arguments` each, and begins no step before the
// one before it has ended.
#pragma once

#ifdef __CUDACC__
#include "arch/gpu_launch.h"
#else
#include "arch/cpu_launch.h"
#endif
