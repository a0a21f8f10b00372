// RANLUX (Luescher, Comput. Phys. Commun. 79 (1994) 100, hep-lat/9309020): the subtract-with-borrow
// generator of Marsaglia and Zaman (Ann. Appl. Prob. 1 (1991) 462),
//
//   x_n = x_{n-10} - x_{n-24} - c_{n-1} mod b,  b = 2^24,  c_n = 1 if the difference is negative, else 0.
//
// Of every p = LUXURY numbers, a batch of 24 is used and p - 24 are skipped.
//
// Every link takes a share of its site's stream: the next batch, or the next two. A link that needs at
// most half a batch takes only half: links along x and z take the first half of a new batch, and those
// along y and t take its second half. Numbers of a share that a link does not need are not used. A lane
// whose proposal is rejected draws the last numbers of its share. If it needs more after that, it
// advances by one batch and draws the numbers at the same position there.
#pragma once

#include "random/stream.h"

constexpr int BATCH = 24;

// The last 24 numbers, the oldest first, and minus the last borrow c.
//
// They represent sum_k x_{n-24+k} b^k - sum_{k<10} x_{n-10+k} b^k + c modulo m = b^24 - b^10 + 1. A step
// divides this by b (Tezuka, L'Ecuyer and Couture, ACM Trans. Model. Comput. Simul. 3 (1993) 315), for
// any choice of the borrow c_n for which x_n - b c_n has the right value. So skipped numbers can be
// computed with one subtraction each and without borrows, until the words are full. Then 24 steps with
// borrows bring all x back to 0 <= x < b. The last of these borrows may exceed one, which the oldest x
// compensates. The numbers of the next 24 steps are again those of the definition, and so is the borrow
// after them.
struct SubtractWithBorrow {
    signed_word x[BATCH], carry;

    INLINE void next_batch() {
        UNROLL for (int n = 0; n < BATCH; n++) {
            const signed_word d = x[(n + 14) % BATCH] - x[n] + carry;
            carry = d >> 24;
            x[n] = d & 0xffffff;
        }
    }

    template <int STEPS> INLINE void skip() {
        constexpr int PLAIN = STEPS - BATCH, PARTS = (PLAIN + MOST_PLAIN - 1) / MOST_PLAIN;
        if constexpr (PLAIN > 0) {
            x[0] -= carry;
            carry = signed_word{};
            skip_parts<PLAIN, PARTS>();
        }
        if constexpr (STEPS > 0) next_batch();
    }

private:
    // Without borrows |x| grows by a factor of at most about 2^(1/16) per step: the largest root of
    // z^24 = z^14 + 1 is 1.0444 = 2^(1/15.95). From 2^24, |x| stays below 2^31 for 107 steps and the 24 steps
    // with borrows after them, for any start (tests/random/test_ranlux.py).
    static constexpr int MOST_PLAIN = 107;

    template <int STEPS, int PARTS> INLINE void skip_parts() {
        constexpr int NOW = STEPS / PARTS;
        UNROLL for (int n = 0; n < NOW; n++) x[n % BATCH] = x[(n + 14) % BATCH] - x[n % BATCH];
        rotate(NOW);
        if constexpr (PARTS > 1) {
            shorten();
            skip_parts<STEPS - NOW, PARTS - 1>();
        }
    }

    // Move the oldest number, which is at place steps % BATCH after that many steps, to the first place.
    INLINE void rotate(int steps) {
        signed_word old[BATCH];
        UNROLL for (int i = 0; i < BATCH; i++) old[i] = x[i];
        UNROLL for (int i = 0; i < BATCH; i++) x[i] = old[(steps + i) % BATCH];
    }

    // Carry the bits above the lowest 24 to the next number. The represented value does not change.
    INLINE void shorten() {
        signed_word high[BATCH];
        UNROLL for (int i = 0; i < BATCH; i++) high[i] = x[i] >> 24;
        x[0] = (x[0] & 0xffffff) + high[13] - high[BATCH - 1];
        UNROLL for (int i = 1; i < BATCH; i++) x[i] = (x[i] & 0xffffff) + high[i - 1];
    }
};

// Return the i-th of the numbers of 24 bits that are packed into words of 32 bits, four in three.
template <int W> INLINE word number(const word (&w)[W], int i) {
    const int place = i * 24 / 32;
    switch (i % 4) {
        case 0: return w[place] & 0xffffff;
        case 1: return (w[place] >> 24 | w[place + 1] << 8) & 0xffffff;
        case 2: return (w[place] >> 16 | w[place + 1] << 16) & 0xffffff;
        default: return w[place] >> 8;
    }
}

// Drop the first COUNT numbers; COUNT is even.
template <int COUNT, int W> INLINE void drop(word (&w)[W]) {
    constexpr int WORDS = COUNT * 24 / 32;
    UNROLL for (int i = 0; i + WORDS < W; i++) {
        if (COUNT % 4 == 0) w[i] = w[i + WORDS];
        else w[i] = w[i + WORDS] >> 16 | (i + WORDS + 1 < W ? w[i + WORDS + 1] << 16 : word{});
    }
}

template <int W> INLINE void keep_packed(word (&w)[W]) {
    UNROLL for (int i = 0; i < W; i++) keep_in_register(w[i]);
}

// The state of a site: the last 24 numbers in 18 words, minus the last borrow, and a flag. The flag is 1
// if numbers must be skipped before the next batch, as is the case for every batch but the first.
struct RanluxState {
    static constexpr int NUMBERS = 18, BORROW = 18, SKIP = 19, WORDS = 20;
    word w[WORDS];

    INLINE SubtractWithBorrow unpacked() const {
        SubtractWithBorrow s;
        UNROLL for (int i = 0; i < BATCH; i++) s.x[i] = (signed_word)number(w, i);
        s.carry = (signed_word)w[BORROW];
        return s;
    }

    INLINE void pack(const SubtractWithBorrow& s) {
        UNROLL for (int i = 0; i < BATCH / 4; i++) {
            const word a = (word)s.x[4 * i], b = (word)s.x[4 * i + 1];
            const word c = (word)s.x[4 * i + 2], d = (word)s.x[4 * i + 3];
            w[3 * i] = a | b << 24;
            w[3 * i + 1] = b >> 8 | c << 16;
            w[3 * i + 2] = c >> 16 | d << 8;
        }
        w[BORROW] = (word)s.carry;
    }

    // Advance to the next batch.
    INLINE void advance() {
        SubtractWithBorrow s = unpacked();
        // The flag is the same in all lanes.
        if (any_lane(w[SKIP])) s.template skip<LUXURY - BATCH>();
        s.next_batch();
        pack(s);
        w[SKIP] = word{} + 1u;
    }
};

template <int USUAL> struct Ranlux {
    static constexpr int STATE_WORDS = RanluxState::WORDS;
    static constexpr int EACH = REAL_BYTES / 4;  // numbers of 24 bits per uniform number
    static constexpr bool HALVED = USUAL * EACH <= BATCH / 2;
    static constexpr int PART = HALVED ? RanluxState::NUMBERS / 2 : RanluxState::NUMBERS;  // words of a share per batch
    static constexpr int PARTS = HALVED ? 1 : (USUAL * EACH + BATCH - 1) / BATCH;
    // Words of the four numbers that a proposal of the heatbath takes, and of the other numbers of the share.
    static constexpr int SPARE = 4 * EACH * 24 / 32, PLANNED = PARTS * PART - SPARE;

    States<RanluxState::WORDS> states;
    bool second;           // whether the share is the second half of a batch
    word planned[PLANNED]; // the remaining numbers of the share, packed
    word spare[SPARE];     // the last numbers of the share, for rejected proposals
    mask spent;            // lanes that have drawn the spare numbers

    INLINE Ranlux(const Stream& stream, const Geometry& g, const Site& s, int mu)
        : states(stream, g, s), second(HALVED && mu % 2 == 1), spent(everywhere(false)) {
        RanluxState state;
        states.read(state.w);
        word share[PARTS * PART];
        UNROLL for (int i = 0; i < PARTS; i++) {
            if (!second) state.advance();
            UNROLL for (int j = 0; j < PART; j++) share[i * PART + j] = mine(state, j);
        }
        if (!second) states.write(state.w);
        UNROLL for (int i = 0; i < PLANNED; i++) planned[i] = share[i];
        UNROLL for (int i = 0; i < SPARE; i++) spare[i] = share[PLANNED + i];
    }

    INLINE void begin(int) {}
    INLINE void end() {}

    template <int N> INLINE void uniforms(real (&u)[N]) {
        to_reals(planned, u);
        drop<N * EACH>(planned);
        keep_packed(planned);
    }

    template <int N> INLINE void uniforms(real (&u)[N], mask wanted) {
        const mask lacking = wanted & spent;
        if (any_lane(lacking)) renew(lacking);
        spent = spent | wanted;
        to_reals(spare, u);
    }

private:
    template <int N, int W> static INLINE void to_reals(const word (&w)[W], real (&u)[N]) {
        static_assert(N * EACH * 24 <= W * 32);
        UNROLL for (int i = 0; i < N; i++) {
#if REAL_BYTES == 4
            u[i] = uniform_from_24_bits(number(w, i));
#else
            u[i] = uniform_from_48_bits(number(w, 2 * i), number(w, 2 * i + 1));
#endif
        }
    }

    // Return the i-th word of this link's part of a batch.
    INLINE word mine(const RanluxState& batch, int i) const {
        return second ? batch.w[RanluxState::NUMBERS - PART + i] : batch.w[i];
    }

    INLINE void renew(mask lanes) {
        advance(states, lanes);
        RanluxState state;
        states.read(state.w);
        UNROLL for (int i = 0; i < SPARE; i++)
            spare[i] = select_word(lanes, mine(state, PART - SPARE + i), spare[i]);
    }

    static RARE void advance(States<RanluxState::WORDS> states, mask lanes) {
        RanluxState old, state;
        states.read(old.w);
        state = old;
        state.w[RanluxState::SKIP] = word{} + 1u;  // it is 1 already, but this removes a branch
        state.advance();
        UNROLL for (int i = 0; i < RanluxState::WORDS; i++)
            state.w[i] = select_word(lanes, state.w[i], old.w[i]);
        states.write(state.w);
    }
};
