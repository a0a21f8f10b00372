// Differences between systems: how threads sleep, and how they are bound to cores.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>

#if defined(__linux__) && !defined(PORTABLE_THREADS)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

// Sleep, until woken, if a number still is the one that was seen.
class Bed {
public:
    void sleep(std::atomic<int>& number, int seen) {
        syscall(SYS_futex, &number, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    }
    void wake_all(std::atomic<int>& number) {
        syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    }
};

// Bind a thread that is to be made to a core.
inline void bind_to_core(pthread_attr_t& attributes, int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
}

inline bool is_on_core(int core) { return sched_getcpu() == core; }

// Move the calling thread to a core on which it may run. It may leave again.
inline void move_to_core(int core) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_getaffinity(0, sizeof all, &all) == 0 && CPU_ISSET(core, &all) &&
        sched_setaffinity(0, sizeof one, &one) == 0)
        sched_setaffinity(0, sizeof all, &all);
}

#else  // the standard of POSIX, which knows no cores

class Bed {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t woken = PTHREAD_COND_INITIALIZER;

public:
    void sleep(std::atomic<int>& number, int seen) {
        pthread_mutex_lock(&mutex);
        if (number.load() == seen) pthread_cond_wait(&woken, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    void wake_all(std::atomic<int>&) {
        pthread_mutex_lock(&mutex);
        pthread_cond_broadcast(&woken);
        pthread_mutex_unlock(&mutex);
    }
};

inline void bind_to_core(pthread_attr_t&, int) {}
inline bool is_on_core(int) { return true; }
inline void move_to_core(int) {}

#endif
