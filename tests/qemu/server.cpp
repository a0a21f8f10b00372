// A process that runs kernels on an emulated processor, in memory that it shares with the process that sends commands.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../../cuda_src/arch/cpu_team.h"

static void one_after_the_other(Team&, int steps, const Job& job) {
    for (int step = 0; step < steps; step++) job.work(job, step, 0, job.items(job, step));
}

int main(int, char** arguments) {
    void* const address = (void*)strtoull(arguments[2], nullptr, 10);
    const int file = open(arguments[1], O_RDWR);
    const size_t size = strtoull(arguments[3], nullptr, 10);
    if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != address) return 1;
    const int vectors = prctl(PR_SVE_GET_VL);
    printf("%d\n", vectors < 0 ? 0 : vectors & PR_SVE_VL_LEN_MASK);
    fflush(stdout);
    Team team{one_after_the_other, 1};
    std::map<std::string, void (*)(const void*, int, Team*)> kernels;
    char word[8], name[128], function[128], path[4096];
    while (scanf("%7s", word) == 1) {
        if (!strcmp(word, "load")) {
            if (scanf("%127s %127s %4095s", name, function, path) != 3) return 2;
            void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
            kernels[name] = (void (*)(const void*, int, Team*))dlsym(library, function);
        } else {
            int count;
            size_t bytes;
            if (scanf("%127s %d %zu", name, &count, &bytes) != 3 || getchar() != '\n') return 4;
            void* steps = aligned_alloc(64, (bytes + 63) / 64 * 64);
            if (fread(steps, 1, bytes, stdin) != bytes) return 5;
            kernels.at(name)(steps, count, &team);
            free(steps);
        }
        puts("done");
        fflush(stdout);
    }
}
