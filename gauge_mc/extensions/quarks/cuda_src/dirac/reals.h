// Links as the components that the group stores, from which the matrix is rebuilt, or as all entries.
#pragma once

struct FewReals {
    static constexpr int C = GROUP::COMPONENTS;
    static INLINE void entries(const real (&c)[C], real (&u)[MATRIX_REALS]) { GROUP::entries(c, u); }
    static INLINE void numbers(const real (&u)[MATRIX_REALS], real (&c)[C]) { GROUP::components(u, c); }
};
struct AllReals {
    static constexpr int C = MATRIX_REALS;
    static INLINE void entries(const real (&c)[C], real (&u)[MATRIX_REALS]) {
        UNROLL for (int i = 0; i < C; i++) u[i] = c[i];
    }
    static INLINE void numbers(const real (&u)[MATRIX_REALS], real (&c)[C]) {
        UNROLL for (int i = 0; i < C; i++) c[i] = u[i];
    }
};
