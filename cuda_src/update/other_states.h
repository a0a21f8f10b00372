// The states of random numbers at a site of which only some lanes are updated. Until `restore`, the states of the other
// lanes are zero, so that they cannot make the generator do more than these lanes need; then they are what they were.
#pragma once

#include "random/random.h"

template <int WORDS, bool NEEDED> struct OtherStates {
    States<WORDS> states;
    mask lanes;
    bool some;
    word before[WORDS];

    INLINE OtherStates(const Stream& stream, const Geometry& g, const Site& s, mask lanes)
        : states(stream, g, s), lanes(lanes), some(any_lane(!lanes)) {
        if (!some) return;
        states.read(before);
        write(before, [](int) { return word{}; });
    }
    INLINE void restore() {
        if (!some) return;
        word after[WORDS];
        states.read(after);
        write(after, [&](int i) { return before[i]; });
    }

private:
    template <class F> INLINE void write(const word (&own)[WORDS], F others) const {
        word w[WORDS];
        UNROLL for (int i = 0; i < WORDS; i++) w[i] = select_word(lanes, own[i], others(i));
        states.write(w);
    }
};
template <int WORDS> struct OtherStates<WORDS, false> {
    INLINE OtherStates(const Stream&, const Geometry&, const Site&, mask) {}
    INLINE void restore() {}
};
