// A plugin of QEMU that counts instructions, those of ARM processors by their kinds, and writes the counts before every
// system call that writes. The declarations are those of version 1 of QEMU's interface for plugins that are used.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { ADD_U64 };
typedef void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb*);
typedef void (*called)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, called);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int, void*, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);

int qemu_plugin_version = 1;

enum { VECTORS, MEMORY, OTHERS, KINDS };
static uint64_t counted[KINDS];
static bool is_arm;
static FILE* output;

// The groups of the encoding of A64 by bits 25 to 28; loads and stores of SVE are a half of its group.
static int kind(uint32_t word) {
    const uint32_t group = word >> 25 & 15;
    if (!is_arm) return OTHERS;
    if (group == 2) return word >> 31 ? MEMORY : VECTORS;
    if ((group & 5) == 4) return MEMORY;
    return (group & 7) == 7 ? VECTORS : OTHERS;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
    (void)id;
    uint64_t count[KINDS] = {0};
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        count[kind(*(const uint32_t*)qemu_plugin_insn_data(qemu_plugin_tb_get_insn(block, i)))]++;
    for (int k = 0; k < KINDS; k++) qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &counted[k], count[k]);
}

static void call(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number != (is_arm ? 64 : 1)) return;
    for (int k = 0; k < KINDS; k++) fprintf(output, "%llu ", (unsigned long long)counted[k]);
    fprintf(output, "\n");
    fflush(output);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int number, char** arguments) {
    is_arm = !strcmp(*(const char* const*)info, "aarch64");  // the first member of QEMU's description
    output = number == 1 ? fopen(arguments[0] + sizeof "to=" - 1, "w") : NULL;
    if (!output) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_vcpu_syscall_cb(id, call);
    return 0;
}
