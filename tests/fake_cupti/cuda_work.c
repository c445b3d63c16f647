// Work for the driver of our own: streams, memory, a kernel that adds, graphs. It is done at once, on the host, and takes as
// long as it says; the CUPTI of our own beside it reports it as it was, or as CUDA_FAKE_LIE wants.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

typedef struct { uint64_t words; uint32_t turns, grid[3], block[3]; } Launch;
typedef struct { int launches; Launch launch[8]; uint32_t id; } Graph;
enum { TO_DEVICE = 1, TO_HOST = 2, STREAM = 13 };

static Graph *captured;
static int64_t busy_until;
static uint32_t correlation, graphs;

static int lies(const char *how) {
    const char *wanted = getenv("CUDA_FAKE_LIE");
    return wanted && !strcmp(wanted, how);
}

static void *of_cupti(const char *name) {
    static void *cupti;
    const char *path = getenv("STEPSCOPE_CUPTI");
    if (!cupti && path) cupti = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    return cupti ? dlsym(cupti, name) : NULL;
}

static int64_t monotonic_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void field(uint8_t *record, int at, uint64_t value, int size) { memcpy(record + at, &value, size); }

static void report(uint8_t *record, int start_at, int64_t start, int64_t end) {
    int (*put)(const uint8_t *) = (int (*)(const uint8_t *))of_cupti("fake_put");
    int64_t (*at)(int64_t) = (int64_t(*)(int64_t))of_cupti("fake_at");
    if (!put || !at) return;
    field(record, start_at, at(start), 8);
    field(record, start_at + 8, at(end), 8);
    put(record);
}

// A call of the driver that is over now.
static int called(uint32_t call, int64_t start) {
    uint8_t record[256] = {4};
    field(record, 4, call, 4);
    field(record, 28, (uint64_t)pthread_self() & 0xFFFFFFFF, 4);
    field(record, 32, correlation, 4);
    report(record, 8, start, monotonic_now());
    return 0;
}

// When the stream's next piece of work, which takes so long, begins.
static int64_t runs_for(int64_t ns) {
    int64_t start = monotonic_now() + 3000;
    if (start < busy_until) start = busy_until;
    busy_until = start + ns;
    return start;
}

static void worked(uint8_t *record, int place_at, int64_t ns) {
    int64_t start = runs_for(ns), end = start + ns;
    field(record, place_at + 4, 1, 4);
    field(record, place_at + 8, STREAM, 4);
    if (lies("zero")) end = start;
    if (lies("late")) start += 3600000000000, end += 3600000000000;
    if (lies("early")) start -= 50000000, end -= 50000000;
    report(record, 16, start, end);
    if (lies("twice")) report(record, 16, start + 1, end + 1);
}

static void ran(const Launch *launch, uint32_t graph, uint64_t node) {
    uint32_t *words = (uint32_t *)(uintptr_t)launch->words;
    for (uint32_t i = 0; i < launch->grid[0] * launch->block[0]; i++) words[i] += launch->turns;
    if (lies("count") && !graph) return;
    if (lies("graph") && graph && node == 2) return;
    uint8_t record[256] = {10};
    memcpy(record + 52, launch->grid, 12);
    memcpy(record + 64, launch->block, 12);
    field(record, 6, 14, 2);
    field(record, 92, lies("correlation") ? 7777 : correlation, 4);
    field(record, 104, (uintptr_t)(lies("name") ? "another_kernel" : "stepscope_proof"), 8);
    field(record, 144, node, 8);
    field(record, 156, graph, 4);
    worked(record, 40, 30000);
}

static void copied(int direction, size_t bytes) {
    uint8_t record[256] = {1};
    record[4] = direction, record[5] = direction == TO_DEVICE ? 2 : 3, record[6] = direction == TO_DEVICE ? 3 : 2;
    field(record, 8, lies("bytes") ? bytes + 1 : bytes, 8);
    field(record, 44, correlation, 4);
    worked(record, 32, 20000);
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    if (getenv("CUDA_FAKE_NO_MEMORY")) return 2;
    in_use |= 1 << (device - 100);
    *context = &in_use;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { in_use &= ~(1 << (device - 100)); return 0; }
int cuCtxSetCurrent(void *context) { (void)context; return 0; }
int cuModuleLoadData(void **module, const char *text) {
    *module = &in_use;
    return strstr(text, ".entry stepscope_proof(") ? 0 : 218;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "stepscope_proof") ? 500 : 0;
}
int cuStreamCreate(void **stream, unsigned flags) { *stream = &busy_until; return flags == 1 ? 0 : 1; }
int cuMemAlloc_v2(uint64_t *address, size_t bytes) { *address = (uintptr_t)malloc(bytes); return 0; }
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) { (void)flags; *address = malloc(bytes); return 0; }

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    int64_t start = monotonic_now();
    (void)stream, correlation++;
    memcpy((void *)(uintptr_t)to, from, bytes);
    copied(TO_DEVICE, bytes);
    return called(276, start);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    int64_t start = monotonic_now();
    (void)stream, correlation++;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    copied(TO_HOST, bytes);
    return called(278, start);
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    int64_t start = monotonic_now();
    (void)stream, correlation++;
    memset((void *)(uintptr_t)to, value, bytes);
    uint8_t record[256] = {2};
    field(record, 8, bytes, 8);
    field(record, 44, correlation, 4);
    field(record, 50, 3, 2);
    worked(record, 32, 15000);
    return called(214, start);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    int64_t start = monotonic_now();
    Launch launch = {*(uint64_t *)arguments[0], *(uint32_t *)arguments[1], {gx, gy, gz}, {bx, by, bz}};
    (void)function, (void)shared, (void)stream, (void)extra, correlation++;
    if (captured) captured->launch[captured->launches++] = launch;
    else ran(&launch, 0, 0);
    return called(307, start);
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)stream, (void)mode;
    captured = calloc(1, sizeof *captured);
    captured->id = ++graphs;
    return 0;
}
int cuStreamEndCapture(void *stream, void **graph) { (void)stream; *graph = captured; captured = NULL; return 0; }
int cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags) {
    (void)flags;
    *executable = graph;
    return 0;
}
int cuGraphLaunch(Graph *graph, void *stream) {
    int64_t start = monotonic_now();
    (void)stream, correlation++;
    for (int i = 0; i < graph->launches; i++) ran(&graph->launch[i], graph->id, i + 1);
    return called(514, start);
}
int cuStreamSynchronize(void *stream) {
    int64_t start = monotonic_now();
    (void)stream, correlation++;
    while (monotonic_now() < busy_until) usleep(20);
    return called(126, start);
}
