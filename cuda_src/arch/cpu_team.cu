// The threads of a team, which wait for work. Threads that are made for every launch would cost more time than a small
// lattice. This is compiled once for all kernels.
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "arch/cpu_team.h"
#include "arch/threads.h"

// Time in nanoseconds for which a thread without work looks for it before it sleeps. It is longer than the time
// between two launches of a sweep, and short enough to leave the processor to others afterwards.
constexpr long long ALERT = 50000;

// Time in nanoseconds for which a thread waits for the others before it helps them. Shorter delays are chance, and
// links that another thread updates move to its cache.
constexpr long long PATIENCE = 3000;

// Time in nanoseconds after which a waiting thread leaves the processor to others.
constexpr long long YIELD = 20000;

// Least time in nanoseconds between two moves of the calling thread to its core.
constexpr long long MOVE_AGAIN = 10000000;

// Bytes between variables that different threads write; processors fetch cache lines in pairs.
constexpr int APART = 128;

// Number of threads that report the end of their shares to the same counter.
constexpr int THREADS_PER_NODE = 4;

// Number of steps after which a team numbers them from 0 again.
#ifndef MOST_STEPS
#define MOST_STEPS (1u << 30)
#endif

// Maximum number of items that a thread takes from a share at once.
constexpr int MOST_ITEMS = 16;

inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // takes about as long as PAUSE; YIELD takes no time on most processors
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

inline long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// Memory of the C library, so that no library of C++ has to be linked, which some compilers make first. It ends the
// process if there is none, as an exception would that nobody catches.
template <class T> void* aligned(int count) {
    void* memory = nullptr;
    if (posix_memalign(&memory, alignof(T), count * sizeof(T)) != 0) abort();
    return memory;
}
template <class T> T* made(int count) {
    T* const all = (T*)aligned<T>(count);
    for (int k = 0; k < count; k++) new (all + k) T();
    return all;
}

// A number of items that belongs to one step. A later step begins at zero, whoever counts first.
class alignas(APART) Count {
    std::atomic<uint64_t> word{0};

    static int age(uint32_t step, uint64_t seen) { return (int)(step - (uint32_t)(seen >> 32)); }
    static uint64_t packed(uint32_t step, uint32_t items) { return (uint64_t)step << 32 | items; }

public:
    Count() = default;
    Count& operator=(const Count& other) {
        word.store(other.word.load());
        return *this;
    }

    // Add to the number and return the sum.
    uint32_t add(uint32_t step, uint32_t items) {
        for (uint64_t seen = word.load();;) {
            const uint32_t sum = items + (age(step, seen) == 0 ? (uint32_t)seen : 0);
            if (word.compare_exchange_weak(seen, packed(step, sum))) return sum;
        }
    }

    // Take at most `most` of `size` items. The first is `begin`; return how many they are.
    uint32_t take(uint32_t step, uint32_t size, uint32_t most, uint32_t& begin) {
        for (uint64_t seen = word.load();;) {
            if (age(step, seen) < 0) return 0;  // a later step has begun, so that this one is complete
            begin = age(step, seen) == 0 ? (uint32_t)seen : 0;
            if (begin >= size) return 0;
            const uint32_t items = most < size - begin ? most : size - begin;
            if (word.compare_exchange_weak(seen, packed(step, begin + items))) return items;
        }
    }
};

class Threads : public Team {
    struct alignas(APART) Member {
        Count taken, done;             // items of its share in this step
        std::atomic<int> finished{0};  // number of the last task that it has finished
        Threads* team;
        int number;
        pthread_t thread;
    };
    Member* members;
    Count* nodes;  // shares that are complete, for each THREADS_PER_NODE threads
    Count root;    // nodes that are complete
    const Job* job = nullptr;
    int steps = 0;  // of the job
    pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
    alignas(APART) std::atomic<int> round{0};             // number of the current task
    alignas(APART) std::atomic<uint32_t> steps_ended{0};  // steps that are complete, in all tasks together
    alignas(APART) std::atomic<int> asleep{0};
    Bed bed;
    bool ended = false;
    const int home;  // the core of the calling thread, or -1
    long long moved = 0;
    uint32_t steps_begun = 0;  // steps of all tasks before this one

    static void* work(void* argument) {
        Member& me = *(Member*)argument;
        for (int seen = 0;; seen++) {
            me.team->await(seen);
            if (me.team->ended) return nullptr;
            me.team->take_part_in_all(me.number);
            me.finished.store(seen + 1);
        }
    }

    // Wait until there is another task than `seen`.
    void await(int seen) {
        for (const long long end = now() + ALERT; now() < end;)
            for (int spins = 0; spins < 32; spins++) {
                if (round.load() != seen) return;
                pause_briefly();
            }
        asleep.fetch_add(1);
        while (round.load() == seen) bed.sleep(round, seen);
        asleep.fetch_sub(1);
    }

    void begin() {
        round.fetch_add(1);
        if (asleep.load() > 0) bed.wake_all(round);
    }

    // Move the calling thread to its core, where its share of the lattice is in the cache. It may leave again.
    void go_home() {
        if (home < 0 || is_on_core(home) || now() < moved + MOVE_AGAIN) return;
        move_to_core(home);
        moved = now();
    }

    // Number of units among which `items` are divided, so that some units have none.
    static int used(long long items, int begin, int end, int units) {
        int count = 0;
        for (int k = begin; k < end; k++) count += items * (k + 1) / units > items * k / units;
        return count;
    }

    // Report that a share is complete. The last report of a step lets the next one begin.
    void complete(int whose, uint32_t step, long long items) {
        const int node = whose / THREADS_PER_NODE, first = node * THREADS_PER_NODE;
        const int last = first + THREADS_PER_NODE < size ? first + THREADS_PER_NODE : size;
        const int shares = used(items, first, last, size);
        if ((int)nodes[node].add(step, 1) < shares) return;
        const int all = items < size ? used(items, 0, size, size) : size;
        if ((int)root.add(step, (uint32_t)shares) == all) steps_ended.store(step + 1);
    }

    // Take items from a thread's share until none is left, and work on them. Copies of this inlined wherever it is
    // called would take a third of the time to compile all of this file.
    __attribute__((noinline)) bool take_part(int whose, int number, long long items) {
        const uint32_t step = steps_begun + number;
        const long long first = items * whose / size, end = items * (whose + 1) / size;
        const uint32_t share = (uint32_t)(end - first), part = share / 16 + 1;
        const uint32_t most = part < MOST_ITEMS ? part : MOST_ITEMS;
        uint32_t done = 0, begin;
        while (const uint32_t taken = members[whose].taken.take(step, share, most, begin)) {
            job->work(*job, number, first + begin, first + begin + taken);
            done += taken;
        }
        if (done && members[whose].done.add(step, done) == share) complete(whose, step, items);
        return done > 0;
    }

    // Help the nearest threads first; return whether there was something to do.
    bool help(int me, int number, long long items) {
        bool helped = false;
        for (int k = 2; k <= size; k++) {
            const int distance = k % 2 ? -(k / 2) : k / 2;
            helped |= take_part((me + distance + size) % size, number, items);
        }
        return helped;
    }

    void wait(int me, int number, long long items) {
        const uint32_t step = steps_begun + number;
        const auto is_over = [&] { return (int)(steps_ended.load() - step) > 0; };
        for (int spins = 0; spins < 32; spins++) {
            if (is_over()) return;
            pause_briefly();
        }
        bool helps = true;
        for (const long long begin = now(); !is_over(); pause_briefly()) {
            const long long waited = now() - begin;
            if (helps && waited > PATIENCE) helps = help(me, number, items);
            if (waited > YIELD) sched_yield();
        }
    }

    // Do this thread's part of all steps.
    void take_part_in_all(int me) {
        for (int number = 0; number < steps; number++) {
            const long long items = job->items(*job, number);
            if (items == 0) continue;
            if (size > 1) {
                take_part(me, number, items);
                wait(me, number, items);
            } else {
                job->work(*job, number, 0, items);
            }
        }
    }

    // Let every thread do its part.
    void run() {
        go_home();
        if (size > 1) begin();
        take_part_in_all(0);
        const int current = round.load();
        for (int number = 1; number < size; number++) {
            int spins = 0;
            while (members[number].finished.load() != current) {
                pause_briefly();
                if (++spins > 4096) sched_yield();
            }
        }
    }

    // Number the steps from 0 again, before their numbers become too large to tell which of two is later.
    void begin_again() {
        steps_begun = 0;
        steps_ended.store(0);
        root = Count();
        for (int k = 0; k <= size / THREADS_PER_NODE; k++) nodes[k] = Count();
        for (int k = 0; k < size; k++) members[k].taken = members[k].done = Count();
    }

    static void carry_out(Team& team, int steps, const Job& job) {
        Threads& all = (Threads&)team;
        pthread_mutex_lock(&all.busy);
        all.job = &job;
        all.steps = steps;
        all.run();
        all.steps_begun += steps;
        if (all.steps_begun > MOST_STEPS) all.begin_again();
        pthread_mutex_unlock(&all.busy);
    }

public:
    // Make a team of `size` threads, one of which is the caller. `cores` names the processor of each, or is null.
    Threads(int size, const int* cores)
        : Team{carry_out, size}, members(made<Member>(size)), nodes(made<Count>(size / THREADS_PER_NODE + 1)),
          home(cores ? cores[0] : -1) {
        for (int number = 1; number < size; number++) {
            members[number].team = this;
            members[number].number = number;
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            if (cores) bind_to_core(attributes, cores[number]);
            if (pthread_create(&members[number].thread, &attributes, work, &members[number]) != 0)
                pthread_create(&members[number].thread, nullptr, work, &members[number]);
            pthread_attr_destroy(&attributes);
        }
    }

    ~Threads() {
        ended = true;
        begin();
        for (int number = 1; number < size; number++) pthread_join(members[number].thread, nullptr);
        free(members);
        free(nodes);
    }
};

extern "C" Team* make_team(int size, const int* cores) {
    return new (aligned<Threads>(1)) Threads(size, cores);
}
extern "C" void end_team(Team* team) {
    ((Threads*)team)->~Threads();
    free(team);
}
