/* Callbacks that PyTorch calls around every operator and that do nothing: what is left is its own machinery, the floor
   under every profiler that uses it. The callback's layout is `at::RecordFunctionCallback`'s. */

#include <stdbool.h>
#include <stdint.h>

struct callback {
    void **(*start)(void **context, const void *function);
    void (*end)(const void *function, void *context);
    double sampling_probability;
    bool scopes[10], needs_inputs, needs_outputs, needs_ids;
};

/* `at::addGlobalCallback` and `at::removeCallback` of libtorch_cpu, loaded by the process. */
extern uint64_t _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE(struct callback);
extern void _ZN2at14removeCallbackEm(uint64_t);

static void **start(void **context, const void *function) {
    (void)function;
    *context = 0;
    return context;
}

static void end(const void *function, void *context) {
    (void)function;
    (void)context;
}

uint64_t add(bool needs_inputs) {
    struct callback empty = {start, end, 1.0, {true, true, true, true, true, true, true, true, true, true}, needs_inputs, false, false};
    return _ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE(empty);
}

void drop(uint64_t handle) { _ZN2at14removeCallbackEm(handle); }
