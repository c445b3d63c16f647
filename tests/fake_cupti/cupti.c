// A CUPTI of our own: the functions that the recorder calls, with their types of CUPTI's headers. It reports what a
// test plants with fake_put, in buffers that it asks the recorder for, and keeps account of how it is called.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint32_t Code;
typedef void *Handle;
typedef void (*Request)(uint8_t **, size_t *, size_t *);
typedef void (*Complete)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef void (*RequestV2)(uint8_t **, size_t *, size_t *, void *);
typedef void (*CompleteV2)(uint8_t *, size_t, size_t, void *);
typedef struct {
    size_t size;
    const char *name;
    char *other;
    size_t other_size;
    uint8_t allows_others, padding[7];
} Subscription;

enum { KINDS = 64, CALLS = 1024, FUNCTIONS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t version;
static int64_t clock_offset_ns, clock_drift_ppm, callback_offset_ns;
static size_t sizes[KINDS];
static int is_size_given[KINDS];
static int is_enabled[KINDS], is_call_off[3][CALLS];
static struct { char name[64]; Code code; int times, calls; } functions[FUNCTIONS];
static Request request;
static Complete complete;
static RequestV2 request_v2;
static CompleteV2 complete_v2;
static int subscribers_v1, subscribers_v2, is_v1_used, mixed, is_held;
static uint8_t *buffer;
static size_t capacity, used, dropped, flush_ms;
static int buffers_out;

static uint32_t known_version(void) {
    const char *given = getenv("CUDA_FAKE_CUPTI_VERSION");
    if (!version) version = given ? (uint32_t)atoi(given) : 130001;
    return version;
}

// How long a record is: what a test gave it, else as in the release of this version; 0 of a kind that there is not.
static size_t size_of(uint32_t kind) {
    // From a version on: kernels, copies, copies between devices, fills, graphs, overhead, waits, events.
    static const uint32_t kinds[] = {10, 1, 22, 2, 51, 17, 38, 36};
    static const struct { uint32_t version; size_t sizes[8]; } releases[] = {
        {130500, {248, 112, 96, 104, 56, 56, 56, 80}}, {130300, {232, 96, 96, 88, 56, 56, 56, 56}},
        {130000, {216, 96, 96, 88, 56, 56, 56, 56}},   {28, {208, 96, 96, 88, 56, 56, 56, 56}},
        {20, {208, 88, 96, 88, 56, 56, 40, 24}},       {0, {200, 88, 96, 88, 48, 40, 40, 24}},
    };
    if (kind >= KINDS) return 0;
    if (is_size_given[kind]) return sizes[kind];
    if (kind == 4 || kind == 5) return 40;
    if (kind == 12) return 56;
    size_t release = 0;
    while (known_version() < releases[release].version) release++;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i] == kind) return releases[release].sizes[i];
    }
    return 0;
}

static int find(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++) {
        if (!functions[i].name[0]) strncpy(functions[i].name, name, 63);
        if (!strcmp(functions[i].name, name)) return i;
    }
    abort();
}

// A call of one of CUPTI's functions: counted, and failed if a test wants that.
static Code called(const char *name) {
    int at = find(name);
    functions[at].calls++;
    // To subscribe is how one finds out which of them it is.
    if (!strcmp(name, "cuptiSubscribe_v2")) {
    } else if (strstr(name, "_v2") ? is_v1_used : subscribers_v2 && strncmp(name, "cuptiActivity", 13) == 0) mixed++;
    if (functions[at].times == 0) return 0;
    functions[at].times--;
    return functions[at].code;
}

#define CALLED do { pthread_mutex_lock(&lock); Code code_ = called(__func__); pthread_mutex_unlock(&lock); \
                    if (code_) return code_; } while (0)

static int64_t monotonic(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// What CUPTI's clock says at a moment of the monotonic one.
int64_t fake_at(int64_t ns) {
    return ns + callback_offset_ns + clock_offset_ns + (int64_t)((__int128)ns * clock_drift_ppm / 1000000);
}

static int64_t now(void) { return fake_at(monotonic()); }

// PyTorch's profiler gives CUPTI a clock of its own.
static uint64_t other_clock(void) { return monotonic() / 2; }

// What the tests ask for.
void fake_version(uint32_t number) { version = number; }
void fake_clock(int64_t offset_ns, int64_t drift_ppm) { clock_offset_ns = offset_ns; clock_drift_ppm = drift_ppm; }
int64_t fake_now(void) { return now(); }
void fake_size(uint32_t kind, size_t size) { sizes[kind] = size, is_size_given[kind] = 1; }
size_t fake_size_of(uint32_t kind) { return size_of(kind); }
void fake_drop(size_t count) { dropped += count; }
void fake_slow_flush(size_t ms) { flush_ms = ms; }
// From now on no buffer is given back, until it is over.
void fake_hold(int is_on) { is_held = is_on; }
void fake_fail(const char *name, Code code, int times) {
    int at = find(name);
    functions[at].code = code;
    functions[at].times = times;
}
int fake_calls(const char *name) { return functions[find(name)].calls; }
int fake_is_enabled(uint32_t kind) { return is_enabled[kind]; }
int fake_mixed(void) { return mixed; }
int fake_subscribers(void) { return subscribers_v1 + subscribers_v2; }
int fake_buffers_out(void) { return buffers_out; }
// Somebody else listens, by a clock that stays when they do not.
Code cuptiActivityRegisterTimestampCallback(uint64_t (*callback)(void));
void fake_other(int is_there) {
    subscribers_v1 += is_there ? 1 : -1;
    cuptiActivityRegisterTimestampCallback(other_clock);
}

// Somebody else's sessions, as of PyTorch's own profiler: it subscribes for good with the first, and offers its buffers
// anew with each.
static int other_records, is_other_subscribed;
static void other_request(uint8_t **wanted, size_t *size, size_t *most) {
    *wanted = malloc(1 << 16), *size = 1 << 16, *most = 0;
}
static void other_complete(void *context, uint32_t stream, uint8_t *full, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    uint32_t kind;
    for (size_t at = 0; at < valid; at += size_of(kind)) {
        memcpy(&kind, full + at, 4);
        other_records++;
    }
    free(full);
}
void fake_other_begins(void) {
    if (!is_other_subscribed) subscribers_v1++, is_v1_used = 1;
    is_other_subscribed = 1;
    cuptiActivityRegisterTimestampCallback(other_clock);
    request = other_request, complete = other_complete;
    is_enabled[10] = 1;
}

static void *hand_over(void *unused) {
    (void)unused;
    uint8_t *full = buffer;
    size_t valid = used;
    buffer = NULL;
    used = 0;
    buffers_out--;
    if (complete_v2) complete_v2(full, capacity, valid, NULL);
    else if (complete) complete(NULL, 0, full, capacity, valid);
    return NULL;
}

// Its session is over; gives how many records it had in all.
int fake_other_ends(void) {
    is_enabled[10] = 0;
    pthread_mutex_lock(&lock);
    if (buffer) hand_over(NULL);
    pthread_mutex_unlock(&lock);
    return other_records;
}

// On a thread of its own, as a full buffer is.
void fake_complete(void) {
    pthread_t thread;
    if (!buffer) return;
    if (pthread_create(&thread, NULL, hand_over, NULL) == 0) pthread_join(thread, NULL);
    else hand_over(NULL);
}

// Reports a record, whose kind stands first; 0 when its kind is not asked for, -1 when there is no room.
int fake_put(const uint8_t *record) {
    uint32_t kind;
    memcpy(&kind, record, 4);
    size_t size = size_of(kind);
    pthread_mutex_lock(&lock);
    int result = 1;
    uint32_t call;
    memcpy(&call, record + 4, 4);
    int domain = kind == 4 ? 1 : kind == 5 ? 2 : 0;
    // One call cannot be turned on by itself: seen with CUPTI 13.0, where a context is there.
    if (!is_enabled[kind] || (domain && is_call_off[domain][call % CALLS])) result = 0;
    else {
        if (buffer && used + size > capacity) fake_complete();
        if (!buffer) {
            size_t most = 77;
            capacity = 0;
            if (request_v2) request_v2(&buffer, &capacity, &most, NULL);
            else if (request) request(&buffer, &capacity, &most);
            used = 0;
            if (buffer) buffers_out++;
        }
        if (buffer) {
            memcpy(buffer + used, record, size);
            used += size;
        } else {
            dropped++;
            result = -1;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

// CUPTI's functions.
Code cuptiGetVersion(uint32_t *number) {
    CALLED;
    *number = known_version();
    return 0;
}

Code cuptiGetResultString(Code code, const char **text) {
    static char texts[1000];
    snprintf(texts, sizeof texts, "CUPTI_ERROR_NUMBER_%u", code);
    *text = texts;
    return 0;
}

Code cuptiGetCallbackName(uint32_t domain, uint32_t call, const char **name) {
    static char names[3][CALLS][48];
    static const struct { uint32_t domain, call; const char *name; } known[] = {
        {2, 17, "cudaGetDevice_v3020"},          {2, 41, "cudaMemcpyAsync_v3020"},
        {2, 51, "cudaMemsetAsync_v3020"},        {2, 131, "cudaStreamSynchronize_v3020"},
        {2, 135, "cudaEventRecord_v3020"},       {2, 211, "cudaLaunchKernel_v7000"},
        {2, 311, "cudaGraphLaunch_v10000"},      {1, 242, "cuMemGetInfo_v2"},
        {1, 307, "cuLaunchKernel"},              {1, 652, "cuLaunchKernelEx"},
        {1, 276, "cuMemcpyHtoDAsync_v2"},        {1, 278, "cuMemcpyDtoHAsync_v2"},
        {1, 214, "cuMemsetD8Async"},             {1, 514, "cuGraphLaunch"},
        {1, 126, "cuStreamSynchronize"},
    };
    *name = NULL;
    if (domain < 1 || domain > 2 || call < 1 || call > (domain == 1 ? 806 : 522)) return 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].domain == domain && known[i].call == call) {
            *name = known[i].name;
            return 0;
        }
    }
    snprintf(names[domain][call], 48, domain == 1 ? "cuOther%u" : "cudaOther%u_v3020", call);
    *name = names[domain][call];
    return 0;
}

static Code subscribed(Handle *handle, int *count) {
    if (subscribers_v1 > 0 || subscribers_v2 > 0) return 39;
    *handle = count;
    ++*count;
    return 0;
}

Code cuptiSubscribe(Handle *handle, void *callback, void *data) {
    (void)callback, (void)data;
    CALLED;
    Code code = subscribed(handle, &subscribers_v1);
    if (!code) is_v1_used = 1;
    return code;
}

Code cuptiSubscribe_v2(Handle *handle, void *callback, void *data, Subscription *wanted) {
    (void)callback, (void)data;
    CALLED;
    if (wanted->size != 40 || wanted->allows_others != 1 || strcmp(wanted->name, "stepscope")) return 1;
    if (subscribers_v1 > 0) snprintf(wanted->other, wanted->other_size, "CUPTI for somebody");
    return subscribed(handle, &subscribers_v2);
}

Code cuptiUnsubscribe(Handle handle) {
    CALLED;
    --*(int *)handle;
    request_v2 = NULL;
    return 0;
}

Code cuptiSetThreadIdType(uint32_t type) {
    CALLED;
    return type == 0 ? 0 : 1;
}

// What the callback says is ahead of the monotonic clock by as much as it is now.
Code cuptiActivityRegisterTimestampCallback(uint64_t (*callback)(void)) {
    CALLED;
    if (!callback || subscribers_v2) return 14;
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < 9; i++) {
        int64_t before = monotonic(), told = callback(), took = monotonic() - before;
        if (took < shortest) shortest = took, callback_offset_ns = told - before - took / 2;
    }
    return 0;
}

Code cuptiActivityRegisterCallbacks(Request wanted, Complete given) {
    CALLED;
    request = wanted, complete = given;
    return 0;
}

Code cuptiActivityRegisterCallbacks_v2(Handle handle, RequestV2 wanted, CompleteV2 given) {
    CALLED;
    if (handle != &subscribers_v2) return 1;
    request_v2 = wanted, complete_v2 = given;
    return 0;
}

static Code switched(uint32_t kind, int is_on) {
    if (!size_of(kind)) return 21;
    is_enabled[kind] = is_on;
    // A kind turned on or off as one overrides what was said of its calls.
    if (kind == 4 || kind == 5) memset(is_call_off[kind == 4 ? 1 : 2], 0, sizeof is_call_off[1]);
    return 0;
}

Code cuptiActivityEnable(uint32_t kind) { CALLED; return switched(kind, 1); }
Code cuptiActivityDisable(uint32_t kind) { CALLED; return switched(kind, 0); }
Code cuptiActivityEnable_v2(Handle handle, uint32_t kind, void *config) {
    CALLED;
    return handle != &subscribers_v2 || config ? 1 : switched(kind, 1);
}
Code cuptiActivityDisable_v2(Handle handle, uint32_t kind, void *config) {
    CALLED;
    return handle != &subscribers_v2 || config ? 1 : switched(kind, 0);
}

static Code call_switched(int domain, uint32_t call, uint8_t is_on) {
    is_call_off[domain][call % CALLS] = !is_on;
    return 0;
}

Code cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t on) { CALLED; return call_switched(2, call, on); }
Code cuptiActivityEnableDriverApi(uint32_t call, uint8_t on) { CALLED; return call_switched(1, call, on); }
Code cuptiActivityEnableRuntimeApi_v2(Handle handle, uint32_t call, uint8_t on) {
    CALLED;
    return handle != &subscribers_v2 ? 1 : call_switched(2, call, on);
}
Code cuptiActivityEnableDriverApi_v2(Handle handle, uint32_t call, uint8_t on) {
    CALLED;
    return handle != &subscribers_v2 ? 1 : call_switched(1, call, on);
}

// What a library may do to a program that uses it, where CUDA_FAKE_TROUBLE wants it.
static int is_trouble(const char *what) {
    const char *wanted = getenv("CUDA_FAKE_TROUBLE");
    return wanted && !strcmp(wanted, what);
}
// Not by raise: threads of the recorder block signals.
static void crash(void) { *(volatile int *)8 = 1; }
__attribute__((constructor)) static void as_loaded(void) { if (is_trouble("crash at load")) crash(); }
__attribute__((destructor)) static void at_exit(void) { if (is_trouble("crash at exit")) crash(); }

Code cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    if (is_trouble("crash")) crash();
    if (is_trouble("quit")) exit(0);
    while (is_trouble("hang")) pause();
    pthread_mutex_lock(&lock);
    functions[find("cuptiActivityFlushAll")].calls++;
    pthread_mutex_unlock(&lock);
    if (flush_ms) usleep(flush_ms * 1000);
    pthread_mutex_lock(&lock);
    if (buffer && !is_held) hand_over(NULL);
    pthread_mutex_unlock(&lock);
    return 0;
}

static Code next(uint8_t *base, size_t valid, uint8_t **record) {
    uint8_t *at = base;
    if (*record) {
        uint32_t kind;
        memcpy(&kind, *record, 4);
        at = *record + size_of(kind);
    }
    if (at >= base + valid) return 12;
    *record = at;
    return 0;
}

Code cuptiActivityGetNextRecord(uint8_t *base, size_t valid, uint8_t **record) { return next(base, valid, record); }
Code cuptiActivityGetNextRecord_v2(Handle handle, uint8_t *base, size_t valid, uint8_t **record) {
    return handle != &subscribers_v2 ? 1 : next(base, valid, record);
}

static Code count_dropped(size_t *count) {
    pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

Code cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
    (void)context, (void)stream;
    CALLED;
    return count_dropped(count);
}
Code cuptiActivityGetNumDroppedRecords_v2(Handle handle, void *context, uint32_t stream, size_t *count) {
    (void)context, (void)stream;
    CALLED;
    return handle != &subscribers_v2 ? 1 : count_dropped(count);
}

Code cuptiGetTimestamp(uint64_t *ns) { CALLED; *ns = now(); return 0; }
Code cuptiGetTimestamp_v2(Handle handle, uint64_t *ns) { CALLED; *ns = now(); return handle != &subscribers_v2; }
