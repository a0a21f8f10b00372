// A library with the functions of NVML that are used: two GPUs, each of which takes 300 W.
// The counters advance every 20 ms. FAKE_NVML_INIT and FAKE_NVML_ENERGY are the error codes of
// nvmlInit_v2 and nvmlDeviceGetTotalEnergyConsumption.
#include <stdlib.h>
#include <strings.h>
#include <time.h>

static int code(const char* name) {
    const char* text = getenv(name);
    return text ? atoi(text) : 0;
}

int nvmlInit_v2(void) { return code("FAKE_NVML_INIT"); }

const char* nvmlErrorString(int result) { return result == 4 ? "No Permission" : "Another Error"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** handle) {
    static char gpus[2];
    const char* known[] = {"0000:01:00.0", "0000:02:00.0"};
    for (int n = 0; n < 2; ++n) {
        if (strcasecmp(address, known[n]) == 0) {
            *handle = gpus + n;
            return 0;
        }
    }
    return 6;
}

int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long ticks = now.tv_sec * 50LL + now.tv_nsec / 20000000;
    *millijoules = ticks * 6000;
    return handle ? code("FAKE_NVML_ENERGY") : 2;
}
