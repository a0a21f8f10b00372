// A part of an iteration of BiCGstab (H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631); see
// dirac/iterations.h. It computes
//   SHADOW              alpha = rho / <r0, v>, with rho in the rows NORM2 and IMAGINARY
//   MINIMUM             omega = <t, r> / <t, t>, where <r, t> is known
//   RESIDUAL and TURN   whether the true residual is due, and beta = rho' / rho alpha / omega with rho' = <r0, r'>
// as the host does, by the arithmetic that gauge_mc/extensions/quarks/vectors/basis.py describes: the kernel has to be
// compiled with STRICT, so that only that is fused which NumPy fuses.
#include "arch/launch.h"
#include "dirac/iterations.h"

constexpr int SHADOW = 1, MINIMUM = 4, TURN = 8;
constexpr int ALPHAS = OWN, OMEGAS = OWN + 2, SHADOWS = OWN + 4;  // alpha, omega and <r0, v>
constexpr int PRODUCTS_WITH_T = OWN + 6, T_NORM2 = OWN + 8;       // <r, t> and <t, t>
constexpr int RHOS = OWN + 9, ROWS = OWN + 11;                    // rho'
constexpr int ALPHA = 0, HALF_STEP = 1, OMEGA = 2, STEP = 3, BETA = 4, BACK = 5;  // -alpha, -omega and -beta omega
constexpr int FACTORS = 6;
constexpr int PLAIN = 0, SMITH = 1, SMITH_FUSED = 2;  // how complex numbers are divided and multiplied

struct Number {
    double re, im;
};

INLINE double size_of(double x) { return x < 0 ? -x : x; }
INLINE bool is_finite(double x) { return size_of(x) <= LARGEST; }
INLINE Number minus(const Number& a) { return {-a.re, -a.im}; }
INLINE double add_product(double a, double b, double c, [[maybe_unused]] bool fused) {
#if STRICT
    if (fused) return fused_exactly((scalar)a, (scalar)b, (scalar)c);
#endif
    return a * b + c;
}
INLINE Number multiply(const Number& a, const Number& b, int how) {
    const bool fused = how == SMITH_FUSED;
    const double first = a.im * b.im, second = a.im * b.re;
    return {add_product(a.re, b.re, -first, fused), add_product(a.re, b.im, second, fused)};
}
INLINE Number divide(const Number& a, const Number& b, int how) {
    if (how == PLAIN) {
        const double norm2 = b.re * b.re + b.im * b.im;
        return {(a.re * b.re + a.im * b.im) / norm2, (a.im * b.re - a.re * b.im) / norm2};
    }
    if (size_of(b.re) >= size_of(b.im)) {
        const double ratio = b.im / b.re, scale = 1.0 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const double ratio = b.re / b.im, scale = 1.0 / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}

struct Vector : WatchedVector<ROWS> {
    static constexpr int FACTORS_OF_ALL = FACTORS;
    static constexpr bool IS_COMPLEX = true;
    Number factor[FACTORS];
    int how;

    INLINE Vector(const Arguments& a, int vector) : WatchedVector(a.state, a.vectors, vector), how(a.arithmetic) {
        UNROLL for (int i = 0; i < FACTORS; i++) factor[i] = {0, 0};
    }
    static INLINE int part_of(int factor) {
        return factor <= HALF_STEP ? SHADOW : factor <= STEP ? MINIMUM : TURN;
    }
    INLINE Number number(int i) const { return {row[i], row[i + 1]}; }
    INLINE void set(int i, const Number& a) { row[i] = a.re, row[i + 1] = a.im; }
    // Of vectors that are live; the search halts if one cannot be divided.
    INLINE Number ratio(const Number& a, const Number& b, bool& halts) const {
        const bool divides = (b.re != 0 || b.im != 0) && is_finite(b.re) && is_finite(b.im);
        if (live() && divides) return divide(a, b, how);
        halts = halts || live();
        return {0, 0};
    }

    INLINE bool take(int part, const double (&sums)[MOST_SUMS]) {
        bool halts = false;
        if (part & SHADOW) {
            begin();
            set(SHADOWS, {sums[0], sums[1]});
            const Number alpha = ratio(number(NORM2), {sums[0], sums[1]}, halts);
            set(ALPHAS, alpha);
            factor[ALPHA] = alpha, factor[HALF_STEP] = minus(alpha);
        } else if (part & MINIMUM) {
            set(PRODUCTS_WITH_T, {sums[0], sums[1]}), row[T_NORM2] = sums[2];
            const Number omega = ratio({sums[0], -sums[1]}, {sums[2] == 0 ? 1 : sums[2], 0}, halts);
            set(OMEGAS, omega);
            factor[OMEGA] = omega, factor[STEP] = minus(omega);
        } else {
            halts = take_residual(sums[2]);
            const Number rho = {sums[0], sums[1]};
            const Number omega = number(OMEGAS), first = ratio(rho, number(NORM2), halts);
            const Number beta = multiply(first, ratio(number(ALPHAS), omega, halts), how);
            factor[BETA] = beta, factor[BACK] = multiply(minus(beta), omega, how);
            set(RHOS, rho);
            set(NEXT + NORM2, live() ? rho : number(NORM2));
        }
        return halts;
    }
};

SHARED_KERNEL_IN_TWO(bicgstab_coefficients, add_products_up, true, end_part<Vector>)
