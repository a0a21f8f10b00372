// A part of an iteration of conjugate gradients (Hestenes and Stiefel, 1952) for several vectors: add up scalar products,
// and from the sums compute
//   CURVATURE  alpha = g / <p, A p> with g = |r|^2, or the squared norm of what takes the place of r in directions
//   RESIDUAL   whether the true residual is due, by |r'|^2 for the new residual r'
//   DIRECTION  beta = g' / g
// so that iterations follow each other without the host. RESIDUAL and DIRECTION are one part if g' is |r'|^2. Once a
// vector needs more than that, because its true residual is due or because it has broken down, the search halts: the
// state is that before this iteration, and the host goes on with it. What is due is what ResidualWatch in
// gauge_mc/quarks/solvers says.
//
// The state is [row][vector]; rows from NEXT on are those that the next iteration begins with. With a fifth direction a
// vector of the solver is several of the kernels, for each of which there are factors.
#include "arch/launch.h"
#include "lattice/partial_sums.h"

constexpr int CURVATURE = 1, RESIDUAL = 2, DIRECTION = 4;  // parts of an iteration, of which one may be two together
constexpr int SUMS = 1, COEFFICIENTS = 2;  // stages of a part, between which devices wait for each other

constexpr int NORM2 = 0, HIGHEST = 1, LOWEST = 2, SINCE = 3, ITERATIONS = 4, KEPT = 5;  // what an iteration changes
constexpr int NEXT = KEPT;
constexpr int LIVE = 2 * KEPT, TARGET = LIVE + 1, GROWN = LIVE + 2, REDUCTION = LIVE + 3, SLOWEST = LIVE + 4;
constexpr int PLATEAU = LIVE + 5, MOST = LIVE + 6;
constexpr int CURVATURES = LIVE + 7, SQUARES = LIVE + 8;  // <p, A p> and |r'|^2
constexpr int ROWS = LIVE + 9;
constexpr int ALPHA = 0, STEP = 1, BETA = 2, FACTORS = 3;  // alpha, -alpha and beta

constexpr int HALTS = 4;  // why the search has halted in each part, or 0; of an even number, for the alignment of factors
constexpr int MOST_SLABS = 16;
constexpr int HERE = 1, BEFORE = 2;

struct Arguments {
    Geometry geometry;
    Work work;
    PartialSums partial;  // of the products of every slice of some vectors of the kernels
    double* by_slice[MOST_SLABS];  // [slice][vector][s], of all slices of the lattice, on the devices of all slabs
    double* state;                 // [row][vector]
    double* factors;               // [factor][vector][s][re, im]
    int* halted;                   // [HALTS]
    int part, stages, vectors, fifth;
    int own_halt, other_halt;       // the numbers of the halt that this part sets, and of that of the part before
    int first_summed, summed;       // the first vector of the kernels whose sums these are, and their number
    int slab, slabs;                // the number of this slab, and that of all
    int first, slices, all_slices;  // the slab's first slice, the number of its slices, and that of the lattice's
    int product;                    // the number of the sum that is needed among the products
    Shares shares;
};

constexpr double LARGEST = 0x1.fffffffffffffp1023;

INLINE bool usable(double square) { return square > 0 && square <= LARGEST; }

// The state of a vector, which is read and written as a whole, so that a thread waits for the memory once.
struct Vector {
    double row[ROWS], factor[FACTORS];

    INLINE Vector(const double* state, int vectors, int vector) {
        UNROLL for (int i = 0; i < ROWS; i++) row[i] = state[i * vectors + vector];
        UNROLL for (int i = 0; i < FACTORS; i++) factor[i] = 0;
    }
    INLINE void store(double* state, int vectors, int vector) const {
        UNROLL for (int i = 0; i < ROWS; i++)
            if (i < LIVE || i >= CURVATURES) state[i * vectors + vector] = row[i];
    }
    static INLINE double ratio(double a, double b, bool where) { return where ? a / b : 0.0; }

    // Whether the search halts.
    INLINE bool take_curvature(double curvature) {
        UNROLL for (int i = 0; i < KEPT; i++) row[i] = row[NEXT + i];
        const bool live = row[LIVE] != 0, stepping = live && usable(curvature);
        row[CURVATURES] = curvature;
        factor[ALPHA] = ratio(row[NORM2], curvature, stepping);
        factor[STEP] = -factor[ALPHA];
        return stepping != live;
    }
    INLINE bool take_residual(double square) {
        const bool live = row[LIVE] != 0, going = live && square <= LARGEST;
        const double now = root((scalar)square);
        const double highest = now > row[HIGHEST] ? now : row[HIGHEST], iterations = row[ITERATIONS] + live;
        const bool slower = now < row[SLOWEST] * row[LOWEST];
        const double since = slower && going ? 0.0 : row[SINCE] + 1;
        const bool low = now < row[REDUCTION] * highest || now <= row[TARGET], grown = now > row[GROWN];
        const bool ended = since >= row[PLATEAU] || iterations >= row[MOST];
        row[SQUARES] = square;
        row[NEXT + HIGHEST] = highest, row[NEXT + LOWEST] = slower ? now : row[LOWEST];
        row[NEXT + SINCE] = since, row[NEXT + ITERATIONS] = iterations;
        return live && !(going && !low && !grown && !ended);
    }
    INLINE bool take_direction(double square) {
        const bool live = row[LIVE] != 0, turning = live && usable(row[NORM2]) && square <= LARGEST;
        factor[BETA] = ratio(square, row[NORM2], turning);
        row[NEXT + NORM2] = turning ? square : row[NORM2];
        return turning != live;
    }
    INLINE bool take(int part, double sum) {
        bool halts = part & CURVATURE ? take_curvature(sum) : false;
        if (part & RESIDUAL) halts = take_residual(sum);
        if (part & DIRECTION) halts = take_direction(sum) || halts;
        return halts;
    }
};

// The halt on which a part depends is not the one that it sets, since its threads begin and end at different times.
INLINE bool was_halted(const Arguments& a) { return a.halted[a.other_halt] != 0; }
INLINE void halt(const Arguments& a, int why) {
    int& own = a.halted[a.own_halt];
    if (own == 0) own = why;
}

template <class Each> INLINE void each_of(const Arguments& a, const Site& site, int vectors, Each each) {
    const int sites = a.geometry.half_x.divisor;
    if (site.slot < sites)
        for (int vector = site.slot; vector < vectors; vector += sites) each(vector);
}

INLINE void gradient_coefficients_site(const Arguments& a, const Site& site, int share, int shares) {
    if (!(a.stages & SUMS) || was_halted(a)) return;
    each_of(a, site, a.summed, [&](int vector) {
        ROLLED for (int t = share; t < a.slices; t += shares) {
            const double sum = sum_of_slice(a.partial, vector * a.slices + t, a.product);
            const int place = (a.first + t) * a.vectors * a.fifth + a.first_summed + vector;
            for (int slab = 0; slab < a.slabs; slab++) a.by_slice[slab][place] = sum;
        }
    });
}

INLINE void gradient_coefficients_end(const Arguments& a, const Site& site, int share, int) {
    if (!(a.stages & COEFFICIENTS) || share > 0) return;
    if (was_halted(a)) {
        halt(a, BEFORE);
        return;
    }
    each_of(a, site, a.vectors, [&](int vector) {
        const int numbers = a.vectors * a.fifth, first = vector * a.fifth;
        Vector v(a.state, a.vectors, vector);
        double sum = 0;
        ROLLED for (int s = 0; s < a.fifth; s++)
            sum += sum_of_parts(a.by_slice[a.slab], a.all_slices, numbers, first + s);
        if (v.take(a.part, sum)) halt(a, HERE);
        v.store(a.state, a.vectors, vector);
        UNROLL for (int i = 0; i < FACTORS; i++) {
            const int part = i == BETA ? DIRECTION : CURVATURE;
            if (!(a.part & part)) continue;
            for (int s = 0; s < a.fifth; s++) a.factors[2 * (i * numbers + first + s)] = v.factor[i];
        }
    });
}

SHARED_KERNEL_IN_TWO(gradient_coefficients, gradient_coefficients_site, true, gradient_coefficients_end)
