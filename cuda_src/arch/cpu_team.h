// A team of threads, as kernels see it. Its code is in cpu_team.cu.
#pragma once

// The work of a team: a number of items in every step.
struct Job {
    long long (*items)(const Job&, int step);
    void (*work)(const Job&, int step, long long begin, long long end);
};

struct Team {
    void (*const carry_out)(Team&, int steps, const Job&);
    const int size;

    // Call work(step, begin, end) until all items(step) items of every step are done. No step begins before the
    // previous one has ended. A thread's own share of the items is contiguous, and the same in all steps of equal
    // size, so that its links stay in its cache. Only if it has waited for the others does it take some of theirs.
    template <class Items, class Work> void share(int steps, Items items, Work work) {
        struct Given : Job {
            Items items_of;
            Work work_on;
        };
        const Given given{{[](const Job& job, int step) { return ((const Given&)job).items_of(step); },
                           [](const Job& job, int step, long long begin, long long end) {
                               ((const Given&)job).work_on(step, begin, end);
                           }},
                          items,
                          work};
        carry_out(*this, steps, given);
    }
};
