/* A library that is loaded before the C library (LD_PRELOAD), and that lets calls of the system fail.

   The calls that open for writing, write, truncate, sync, rename, remove or make something in one
   folder are numbered, over all processes together. At a chosen number the process is killed, or
   the call fails. The environment says what is to happen; see `read_environment`. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Kind { OPEN, WRITE, TRUNCATE, SYNC, RENAME, REMOVE, MAKE };
static const char *const names[] = {"open", "write", "truncate", "sync", "rename", "remove", "make"};

enum Action { NOTHING, KILL, TORN, FULL, BROKEN, SLOW };

static char folder[PATH_MAX];
static long at;
static enum Action action;
static long microseconds;
static int log_file = -1;
static atomic_long *count;

/* FAULT_FOLDER: the folder, or nothing happens. FAULT_STATE: a file of eight bytes with the number
   of calls so far. FAULT_AT: the number of the call. FAULT_ACTION: kill (before the call), torn (a
   write of one half, then kill), full (this and all later calls that need space fail with ENOSPC),
   broken (this call alone fails with EIO), slow (every call takes FAULT_MICROSECONDS more).
   FAULT_LOG: a file to which a line is added for every call. */
static void read_environment(void) {
    static const char *const actions[] = {"nothing", "kill", "torn", "full", "broken", "slow"};
    const char *value = getenv("FAULT_FOLDER"), *state = getenv("FAULT_STATE");
    folder[0] = 0;
    if (!value || !state) return;
    snprintf(folder, sizeof folder, "%s", value);
    at = (value = getenv("FAULT_AT")) ? atol(value) : 0;
    microseconds = (value = getenv("FAULT_MICROSECONDS")) ? atol(value) : 0;
    action = NOTHING;
    value = getenv("FAULT_ACTION");
    for (int i = 0; value && i < 6; i++)
        if (!strcmp(value, actions[i])) action = (enum Action)i;
    int file = (int)syscall(SYS_openat, AT_FDCWD, state, O_RDWR | O_CLOEXEC, 0);
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (count == MAP_FAILED) folder[0] = 0;
    value = getenv("FAULT_LOG");
    if (value)
        log_file = (int)syscall(SYS_openat, AT_FDCWD, value, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
}

__attribute__((constructor)) static void begin(void) { read_environment(); }

/* For processes that fork: read the environment again. */
void faults_arm(void) { read_environment(); }

static int concerns(const char *path) {
    size_t length = strlen(folder);
    if (!length || !path) return 0;
    if (path[0] == '/') return !strncmp(path, folder, length);
    char here[PATH_MAX];
    return getcwd(here, sizeof here) && !strncmp(here, folder, length);
}

static int concerns_file(int file, char *path) {
    char link[64];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return !strncmp(path, folder, strlen(folder));
}

/* Note a call; return the error with which it is to fail, -1 if it is to be torn, or 0. */
static int event(enum Kind kind, const char *path) {
    long number = atomic_fetch_add(count, 1) + 1;
    if (log_file >= 0) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%ld %s %s\n", number, names[kind], path);
        syscall(SYS_write, log_file, line, length);
    }
    if (action == SLOW) usleep((useconds_t)microseconds);
    if (!at || number < at) return 0;
    int needs_space = kind == OPEN || kind == WRITE || kind == SYNC || kind == MAKE;
    if (action == FULL) return needs_space ? ENOSPC : 0;
    if (number > at) return 0;
    if (action == TORN && kind == WRITE) return -1;
    if (action == KILL || action == TORN) syscall(SYS_kill, getpid(), SIGKILL);
    return action == BROKEN ? EIO : 0;
}

#define FAIL_IF(kind, path)                 \
    do {                                    \
        int error = event(kind, path);      \
        if (error > 0) {                    \
            errno = error;                  \
            return -1;                      \
        }                                   \
    } while (0)

#define REAL(name, type, ...)                                             \
    static type (*real)(__VA_ARGS__);                                     \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define OPEN_AT(name)                                                     \
    int name(int base, const char *path, int flags, ...) {                \
        va_list rest;                                                     \
        va_start(rest, flags);                                            \
        mode_t mode = va_arg(rest, mode_t);                               \
        va_end(rest);                                                     \
        if ((flags & O_ACCMODE) != O_RDONLY && concerns(path)) FAIL_IF(OPEN, path); \
        return (int)syscall(SYS_openat, base, path, flags, mode);         \
    }
OPEN_AT(openat)
OPEN_AT(openat64)

#define OPEN_HERE(name)                                                   \
    int name(const char *path, int flags, ...) {                          \
        va_list rest;                                                     \
        va_start(rest, flags);                                            \
        mode_t mode = va_arg(rest, mode_t);                               \
        va_end(rest);                                                     \
        if ((flags & O_ACCMODE) != O_RDONLY && concerns(path)) FAIL_IF(OPEN, path); \
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);     \
    }
OPEN_HERE(open)
OPEN_HERE(open64)

ssize_t write(int file, const void *data, size_t size) {
    char path[PATH_MAX];
    if (concerns_file(file, path)) {
        int error = event(WRITE, path);
        if (error < 0) {
            syscall(SYS_write, file, data, size / 2);
            syscall(SYS_kill, getpid(), SIGKILL);
        }
        if (error > 0) {
            errno = error;
            return -1;
        }
    }
    return syscall(SYS_write, file, data, size);
}

static ssize_t write_at(int file, const void *data, size_t size, off_t offset) {
    char path[PATH_MAX];
    if (concerns_file(file, path)) {
        int error = event(WRITE, path);
        if (error < 0) {
            syscall(SYS_pwrite64, file, data, size / 2, offset);
            syscall(SYS_kill, getpid(), SIGKILL);
        }
        if (error > 0) {
            errno = error;
            return -1;
        }
    }
    return syscall(SYS_pwrite64, file, data, size, offset);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
    return write_at(file, data, size, offset);
}
ssize_t pwrite64(int file, const void *data, size_t size, off_t offset) {
    return write_at(file, data, size, offset);
}

static int truncate_file(int file, off_t size) {
    char path[PATH_MAX];
    if (concerns_file(file, path)) FAIL_IF(TRUNCATE, path);
    return (int)syscall(SYS_ftruncate, file, size);
}
int ftruncate(int file, off_t size) { return truncate_file(file, size); }
int ftruncate64(int file, off_t size) { return truncate_file(file, size); }

int fsync(int file) {
    char path[PATH_MAX];
    if (concerns_file(file, path)) FAIL_IF(SYNC, path);
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    char path[PATH_MAX];
    if (concerns_file(file, path)) FAIL_IF(SYNC, path);
    return (int)syscall(SYS_fdatasync, file);
}

int rename(const char *from, const char *to) {
    REAL(rename, int, const char *, const char *);
    if (concerns(to)) FAIL_IF(RENAME, to);
    return real(from, to);
}

int unlink(const char *path) {
    REAL(unlink, int, const char *);
    if (concerns(path)) FAIL_IF(REMOVE, path);
    return real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir, int, const char *, mode_t);
    if (concerns(path)) FAIL_IF(MAKE, path);
    return real(path, mode);
}
