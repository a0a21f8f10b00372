// The law of links at infinite beta: a link is what makes the action smallest, given all others.
#pragma once

#include "group/quaternion.h"

struct Coldest {
    template <template <int> class Generator> struct Choice {
        template <class... Arguments> INLINE Choice(const Arguments&...) {}
        INLINE Quaternion operator()(int, Quaternion w) const { return w.conj().normalised(); }
        INLINE void end() const {}
    };
    template <class G> static INLINE typename G::Matrix mean(const typename G::Matrix& s, real) { return s.normalised(); }
};
