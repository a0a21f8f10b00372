// A library with the functions of ROCm SMI that are used: two GPUs, whose counters have 1.25 and 2.5 kJ at first and
// advance by as much at every reading. FAKE_RSMI_INIT and FAKE_RSMI_ENERGY are the error codes of two functions.
#include <stdint.h>
#include <stdlib.h>

static uint32_t code(const char* name) {
    const char* text = getenv(name);
    return text ? (uint32_t)atoi(text) : 0;
}

uint32_t rsmi_init(uint64_t flags) { return flags ? 1 : code("FAKE_RSMI_INIT"); }

uint32_t rsmi_status_string(uint32_t status, const char** text) {
    *text = status == 4 ? "Permission denied." : "Another error.";
    return 0;
}

uint32_t rsmi_num_monitor_devices(uint32_t* count) {
    *count = 2;
    return 0;
}

uint32_t rsmi_dev_pci_id_get(uint32_t number, uint64_t* place) {
    *place = number ? (1ull << 32 | 0xc1 << 8 | 2 << 3 | 1) : 0x3b << 8;
    return 0;
}

uint32_t rsmi_dev_energy_count_get(uint32_t number, uint64_t* count, float* unit, uint64_t* moment) {
    static uint64_t readings[2];
    *count = ++readings[number] * (number + 1) * 100000000;
    *unit = 12.5f;  // microjoules
    *moment = 0;
    return code("FAKE_RSMI_ENERGY");
}
