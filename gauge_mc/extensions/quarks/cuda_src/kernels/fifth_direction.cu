// Products along the fifth direction; see dirac/fifth.h.
#include "arch/launch.h"
#include "dirac/fifth.h"

struct Arguments {
    Geometry geometry;
    Work work;
    Fifth fifth;
    Shares shares;
};

INLINE void fifth_direction_site(const Arguments& a, const Site& site, int share, int shares) {
    multiply_along_fifth(a.fifth, a.geometry, site, share, shares);
}

SHARED_KERNEL(fifth_direction, fifth_direction_site)
