// The parts of CUDA that kernels use, and an emulated GPU that runs them; see __init__.py.
#pragma once
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <tuple>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

using std::fma, std::sqrt;

struct dim3 { unsigned x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline float rsqrt(float x) { return 1 / sqrt(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __logf(float x) { return log(x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline int __double2loint(double x) { return (int)__builtin_bit_cast(unsigned long long, x); }
inline int __double2hiint(double x) { return (int)(__builtin_bit_cast(unsigned long long, x) >> 32); }
inline double __hiloint2double(int high, int low) {
    return __builtin_bit_cast(double, (unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
// Only the order of the bytes 3, 2, 1, 0 is emulated.
#ifndef __HIP__  // where arch/hip.h has them
template <class T> inline void __stcs(T* at, const T& value) { *at = value; }
template <class T> inline T __ldcs(const T* at) { return *at; }
#endif
inline int __float2int_rn(float x) { return (int)std::nearbyint(x); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned chosen = 0;
    for (int i = 0; i < 4; i++) chosen |= (unsigned)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return chosen;
}
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline void __threadfence() {}

static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

struct Fibre;

struct Block {
    dim3 index;
    unsigned begun = 0, ended = 0;
    std::vector<Fibre*> waiting = {};  // at a barrier
};

// A stack on which threads of a block run one after the other. Another stack is used only if a thread
// waits, so that kernels without barriers need not switch stacks.
struct Fibre {
    ucontext_t start;
    jmp_buf here;  // saves a system call, compared with ucontext_t
    bool started = false;
    Block* block;
    dim3 thread;
    std::unique_ptr<char[]> stack;
};

struct Gpu {
    jmp_buf scheduler;
    Fibre* running = nullptr;
    std::vector<std::unique_ptr<Fibre>> fibres;
    std::vector<Fibre*> idle;
    std::deque<Fibre*> polling;  // have added to a counter and may now poll it
    std::vector<Block> blocks;
    unsigned threads = 0, seed = 0;
    std::function<void()> kernel;
};

static Gpu gpu;
static sigjmp_buf escape;
enum Outcome { DONE, WRONG_SIZE, TOO_MANY_THREADS, ILLEGAL_ADDRESS };

// Return element i of a permutation of 0 ... n-1 that changes from launch to launch.
inline unsigned shuffled(unsigned i, unsigned n) {
    unsigned factor = gpu.seed % n | 1;
    while (std::gcd(factor, n) != 1) factor += 2;
    return (unsigned)(((unsigned long long)i * factor + (gpu.seed >> 8)) % n);
}

inline dim3 place(unsigned i, dim3 shape) { return {i % shape.x, i / shape.x % shape.y, i / shape.x / shape.y}; }

// Let other threads run until this one is resumed.
inline void leave() {
    Fibre* me = gpu.running;
    if (_setjmp(me->here) == 0) _longjmp(gpu.scheduler, 1);
    threadIdx = me->thread;
    blockIdx = me->block->index;
}

inline void resume(Fibre* fibre) {
    gpu.running = fibre;
    if (_setjmp(gpu.scheduler) != 0) return;
    if (fibre->started) _longjmp(fibre->here, 1);
    fibre->started = true;
    setcontext(&fibre->start);
}

inline void run_threads() {
    for (;;) {
        Fibre* me = gpu.running;
        Block& block = *me->block;
        while (block.begun < gpu.threads) {
            blockIdx = block.index;
            me->thread = threadIdx = place(shuffled(block.begun++, gpu.threads), blockDim);
            gpu.kernel();
            block.ended++;
        }
        gpu.idle.push_back(me);
        leave();
    }
}

inline Fibre* a_fibre() {
    constexpr size_t STACK = 256 << 10;
    if (gpu.idle.empty()) {
        auto fibre = std::make_unique<Fibre>();
        fibre->stack.reset(new char[STACK]);
        getcontext(&fibre->start);
        fibre->start.uc_stack.ss_sp = fibre->stack.get();
        fibre->start.uc_stack.ss_size = STACK;
        fibre->start.uc_link = nullptr;
        makecontext(&fibre->start, run_threads, 0);
        gpu.idle.push_back(fibre.get());
        gpu.fibres.push_back(std::move(fibre));
    }
    Fibre* fibre = gpu.idle.back();
    gpu.idle.pop_back();
    return fibre;
}

// Run a block until it has ended or must wait for other blocks.
inline void advance(Block& block) {
    for (;;) {
        if (block.begun < gpu.threads) {
            Fibre* fibre = a_fibre();
            fibre->block = &block;
            resume(fibre);
        } else if (!block.waiting.empty() && block.waiting.size() + block.ended == gpu.threads) {
            std::vector<Fibre*> all;
            all.swap(block.waiting);
            for (Fibre* fibre : all) resume(fibre);
        } else {
            return;
        }
    }
}

inline void run_grid(unsigned count) {
    gpu.blocks.clear();
    for (unsigned i = 0; i < count; i++) gpu.blocks.push_back({place(shuffled(i, count), gridDim)});
    for (Block& block : gpu.blocks) advance(block);
    while (!gpu.polling.empty()) {
        Fibre* fibre = gpu.polling.front();
        gpu.polling.pop_front();
        resume(fibre);
        advance(*fibre->block);
    }
}

inline void caught(int) { siglongjmp(escape, 1); }

// Run a kernel. The parameters are stored one after the other, with the usual alignment. `shape` holds
// the extents of the grid, followed by those of a block.
template <class... P>
int launch(void (*kernel)(P...), unsigned most_threads, const unsigned* shape, const char* parameters, size_t bytes,
           unsigned seed) {
    size_t end = 0;
    auto align = [&](size_t to) { return end = (end + to - 1) / to * to; };
    ((end = align(alignof(P)) + sizeof(P)), ...);
    if (end != bytes) return WRONG_SIZE;
    end = 0;
    auto next = [&]<class T>(T value) {
        memcpy(&value, parameters + align(alignof(T)), sizeof value);
        end += sizeof value;
        return value;
    };
    std::tuple<P...> arguments{next(P())...};

    gridDim = {shape[0], shape[1], shape[2]};
    blockDim = {shape[3], shape[4], shape[5]};
    gpu.threads = blockDim.x * blockDim.y * blockDim.z;
    gpu.seed = seed;
    if (gpu.threads > most_threads) return TOO_MANY_THREADS;
    gpu.kernel = [&] { std::apply(kernel, arguments); };

    struct sigaction action = {}, before[2];
    action.sa_handler = caught;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
    const bool faulted = sigsetjmp(escape, 1) != 0;
    if (!faulted) run_grid(gridDim.x * gridDim.y * gridDim.z);
    sigaction(SIGSEGV, &before[0], nullptr);
    sigaction(SIGBUS, &before[1], nullptr);

    if (faulted) gpu = Gpu();
    return faulted ? ILLEGAL_ADDRESS : DONE;
}

}  // namespace emulator

inline void __syncthreads() {
    emulator::gpu.running->block->waiting.push_back(emulator::gpu.running);
    emulator::leave();
}

// A thread that adds to a counter may poll it afterwards, so all others run first, as far as they can.
template <class T> inline T atomicAdd(T* address, T value) {
    const T old = *address;
    *address = old + value;
    emulator::gpu.polling.push_back(emulator::gpu.running);
    emulator::leave();
    return old;
}
inline unsigned atomicAdd(unsigned* address, int value) { return atomicAdd(address, (unsigned)value); }

#ifdef __HIP__  // the same for the barrier of a grid
#define __HIP_MEMORY_SCOPE_AGENT 0
inline unsigned __hip_atomic_fetch_add(unsigned* address, unsigned value, int, int) { return atomicAdd(address, value); }
inline unsigned __hip_atomic_load(const unsigned* address, int, int) { return *(volatile const unsigned*)address; }
#endif

// Nobody polls these.
inline void atomicXor(unsigned* address, unsigned value) { *address ^= value; }
inline void atomicMax(unsigned* address, unsigned value) { *address = *address > value ? *address : value; }

#define EMULATE(NAME, MOST_THREADS)                                                                        \
    extern "C" int emulate_##NAME(const unsigned* shape, const char* parameters, size_t bytes, unsigned seed) { \
        return emulator::launch(NAME, MOST_THREADS, shape, parameters, bytes, seed);                       \
    }
