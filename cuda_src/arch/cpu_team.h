// A team of threads that wait for work. Threads that are made for every launch would cost more time than a small
// lattice. Every kernel's library has this code, so that any of them can make a team that all of them use.
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>

#include "arch/arch.h"

// Time in nanoseconds for which a thread without work looks for it before it sleeps. It is longer than the time
// between two launches of a sweep, and short enough to leave the processor to others afterwards.
constexpr long long ALERT = 50000;

INLINE void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

INLINE long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

class Team {
    typedef void (*Task)(void* context, int me);

    struct Member {
        Team* team;
        int number;
        pthread_t thread;
    };
    Member* members;
    Task task = nullptr;
    void* context = nullptr;
    pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
    alignas(64) std::atomic<int> round{0};  // number of the current task
    alignas(64) std::atomic<int> left{0};   // members that have not finished it
    alignas(64) std::atomic<int> asleep{0};
    bool ended = false;

    static void* work(void* argument) {
        const Member& me = *(const Member*)argument;
        for (int seen = 0;; seen++) {
            me.team->await(seen);
            if (me.team->ended) return nullptr;
            me.team->task(me.team->context, me.number);
            me.team->left.fetch_sub(1);
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
        while (round.load() == seen) syscall(SYS_futex, &round, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        asleep.fetch_sub(1);
    }

    void begin() {
        round.fetch_add(1);
        if (asleep.load() > 0) syscall(SYS_futex, &round, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    }

public:
    const int size;

    // Make a team of `size` threads, one of which is the caller. `cores` names the processor of each, or is null.
    Team(int size, const int* cores) : members(new Member[size]), size(size) {
        for (int number = 1; number < size; number++) {
            members[number] = {this, number, {}};
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            if (cores) {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(cores[number], &set);
                pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
            }
            if (pthread_create(&members[number].thread, &attributes, work, &members[number]) != 0)
                pthread_create(&members[number].thread, nullptr, work, &members[number]);
            pthread_attr_destroy(&attributes);
        }
    }

    ~Team() {
        ended = true;
        begin();
        for (int number = 1; number < size; number++) pthread_join(members[number].thread, nullptr);
        delete[] members;
    }

    // Let every thread call task(me).
    template <class F> void run(F f) {
        pthread_mutex_lock(&busy);
        task = [](void* context, int me) { (*(F*)context)(me); };
        context = &f;
        left.store(size - 1);
        if (size > 1) begin();
        f(0);
        for (int spins = 0; left.load() > 0; spins++) {
            pause_briefly();
            if (spins > 4096) sched_yield();
        }
        pthread_mutex_unlock(&busy);
    }
};

extern "C" Team* make_team(int size, const int* cores) { return new Team(size, cores); }
extern "C" void end_team(Team* team) { delete team; }
