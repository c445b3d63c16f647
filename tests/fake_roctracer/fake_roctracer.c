// A libroctracer64.so that makes its records up, and a libamdhip64.so with one GPU, for tests on machines without one.
//
// With ROCM_HEADERS it is compiled against AMD's own headers, which proves that ours say the same. The environment:
//   FAKE_ROCTRACER_MAJOR=5        another release
//   FAKE_ROCTRACER_WITHOUT=3      domains that cannot be enabled
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct record {
  uint32_t domain, kind, op;
  uint64_t correlation, begin, end;
  union {
    struct { int device; uint64_t queue; };
    struct { uint32_t process, thread; };
  };
  union { size_t bytes; const char *kernel_name; };
};

typedef void (*allocator)(char **, size_t, void *);
typedef void (*callback)(const char *, const char *, void *);

struct properties {
  uint32_t mode;
  size_t buffer_size;
  allocator alloc_fun;
  void *alloc_arg;
  callback buffer_callback_fun;
  void *buffer_callback_arg;
};

#ifdef ROCM_HEADERS
#include <stdbool.h>
#include <hip/hip_runtime_api.h>
#include <roctracer/ext/prof_protocol.h>
#include <roctracer/roctracer.h>
#define SAME(ours, mine, theirs, its) \
  _Static_assert(offsetof(struct ours, mine) == offsetof(theirs, its), #its " lies elsewhere")
_Static_assert(sizeof(struct record) == sizeof(activity_record_t), "records have another length");
SAME(record, domain, activity_record_t, domain);
SAME(record, kind, activity_record_t, kind);
SAME(record, op, activity_record_t, op);
SAME(record, correlation, activity_record_t, correlation_id);
SAME(record, begin, activity_record_t, begin_ns);
SAME(record, end, activity_record_t, end_ns);
SAME(record, device, activity_record_t, device_id);
SAME(record, queue, activity_record_t, queue_id);
SAME(record, process, activity_record_t, process_id);
SAME(record, thread, activity_record_t, thread_id);
SAME(record, bytes, activity_record_t, bytes);
SAME(record, kernel_name, activity_record_t, kernel_name);
_Static_assert(sizeof(struct properties) == sizeof(roctracer_properties_t), "properties have another length");
SAME(properties, buffer_size, roctracer_properties_t, buffer_size);
SAME(properties, alloc_fun, roctracer_properties_t, alloc_fun);
SAME(properties, buffer_callback_fun, roctracer_properties_t, buffer_callback_fun);
SAME(properties, buffer_callback_arg, roctracer_properties_t, buffer_callback_arg);
_Static_assert(ACTIVITY_DOMAIN_HIP_OPS == 2 && ACTIVITY_DOMAIN_HIP_API == 3, "domains have other numbers");
#define HIP(at, its) _Static_assert(offsetof(hipDeviceProp_tR0600, its) == at, #its " lies elsewhere")
_Static_assert(sizeof(hipDeviceProp_tR0600) == 1472, "HIP's properties have another length");
HIP(0, name);
HIP(288, totalGlobalMem);
HIP(308, warpSize);
HIP(360, major);
HIP(364, minor);
HIP(388, multiProcessorCount);
HIP(624, maxThreadsPerMultiProcessor);
HIP(640, sharedMemPerMultiprocessor);
HIP(648, regsPerMultiprocessor);
HIP(1160, gcnArchName);
#define EXPORT(name) fake_##name
#else
#define EXPORT(name) name
#endif

enum { OPERATIONS = 2, CALLS = 3 };

// The library is asked on one thread while others use the device.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct properties opened;
static int is_open, is_enabled[8], is_left_out[16];
static uint64_t correlations;
// Names lie in the buffer's own memory, behind its records, and are overwritten once it has been handed over.
static struct record records[4096];
static char names[1 << 20];
static size_t count, names_used;

static const char *const CALL_NAMES[] = {"", "hipGetDevice", "hipLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"};
static const char *const COPY_KINDS[] = {"", "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice", "FillBuffer", "CopyImage"};

uint32_t EXPORT(roctracer_version_major)(void) { return getenv("FAKE_ROCTRACER_MAJOR") ? atoi(getenv("FAKE_ROCTRACER_MAJOR")) : 4; }
uint32_t EXPORT(roctracer_version_minor)(void) { return 1; }
const char *EXPORT(roctracer_error_string)(void) { return "it was told to"; }

const char *EXPORT(roctracer_op_string)(uint32_t domain, uint32_t op, uint32_t kind) {
  if (domain == CALLS && op < 5) return CALL_NAMES[op];
  if (domain == OPERATIONS && op == 1 && kind < 6) return COPY_KINDS[kind];
  return domain == OPERATIONS && op == 0 ? "KernelExecution" : NULL;
}

int EXPORT(roctracer_op_code)(uint32_t domain, const char *name, uint32_t *op, uint32_t *kind) {
  for (uint32_t index = 1; domain == CALLS && index < 5; index++)
    if (!strcmp(name, CALL_NAMES[index])) return *op = index, kind ? -3 : 0;
  return -3;
}

int EXPORT(roctracer_open_pool_expl)(const struct properties *properties, void **pool) {
  opened = *properties;
  is_open = properties->mode == 0 && !properties->alloc_fun && properties->buffer_callback_fun;
  *pool = &opened;
  return is_open ? 0 : -3;
}

int EXPORT(roctracer_flush_activity_expl)(void *pool) {
  if (pool != &opened || !is_open) return -3;
  pthread_mutex_lock(&lock);
  if (count) opened.buffer_callback_fun((char *)records, (char *)&records[count], opened.buffer_callback_arg);
  memset(names, 'x', sizeof names - 1);
  count = names_used = 0;
  pthread_mutex_unlock(&lock);
  return 0;
}

int EXPORT(roctracer_close_pool_expl)(void *pool) {
  if (count || is_enabled[OPERATIONS] || is_enabled[CALLS]) abort();
  is_open = 0;
  return pool == &opened ? 0 : -3;
}

int EXPORT(roctracer_enable_domain_activity_expl)(uint32_t domain, void *pool) {
  const char *without = getenv("FAKE_ROCTRACER_WITHOUT");
  if (pool != &opened || (without && (uint32_t)atoi(without) == domain)) return -1;
  return is_enabled[domain] = 1, 0;
}

int EXPORT(roctracer_disable_domain_activity)(uint32_t domain) { return is_enabled[domain] = 0; }
int EXPORT(roctracer_disable_op_activity)(uint32_t domain, uint32_t op) { return is_left_out[op] = 1, domain == CALLS ? 0 : -3; }

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 5000000000000000ull + now.tv_sec * 1000000000ull + now.tv_nsec;
}

int EXPORT(roctracer_get_timestamp)(uint64_t *ns) { return *ns = now_ns(), 0; }

static void put(struct record record) {
  if (!is_open || !is_enabled[record.domain] || (record.domain == CALLS && is_left_out[record.op])) return;
  pthread_mutex_lock(&lock);
  if (count == 4096) EXPORT(roctracer_flush_activity_expl)(&opened);
  if (record.domain == OPERATIONS && record.op == 0 && record.kernel_name) {
    size_t length = strlen(record.kernel_name) + 1;
    if (names_used + length > sizeof names) EXPORT(roctracer_flush_activity_expl)(&opened);
    record.kernel_name = memcpy(names + names_used, record.kernel_name, length);
    names_used += length;
  }
  records[count++] = record;
  pthread_mutex_unlock(&lock);
}

static uint64_t next(void) { return __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED); }

static uint64_t call(uint32_t op, uint64_t start) {
  struct record record = {CALLS, 0, op, next(), start, start + 2000};
  record.process = getpid();
  record.thread = (uint32_t)syscall(SYS_gettid);
  put(record);
  return record.correlation;
}

// A kernel of `ns` on a device and a queue, launched by this thread now.
void fake_roctracer_kernel(const char *name, int device, uint64_t queue, uint64_t ns) {
  uint64_t now = now_ns();
  call(1, now);
  struct record record = {OPERATIONS, 1, 0, call(2, now), now + 2000, now + 2000 + ns};
  record.device = device;
  record.queue = queue;
  record.kernel_name = name;
  put(record);
}

// A copy or a fill, by its place in COPY_KINDS.
void fake_roctracer_copy(uint32_t kind, uint64_t bytes, int device, uint64_t queue, uint64_t ns) {
  uint64_t now = now_ns();
  struct record record = {OPERATIONS, kind, 1, call(3, now), now + 2000, now + 2000 + ns};
  record.device = device;
  record.queue = queue;
  record.bytes = bytes;
  put(record);
}

// The host waits; a barrier, which is no work; and a record without times.
void fake_roctracer_others(void) {
  uint64_t now = now_ns();
  call(4, now);
  put((struct record){OPERATIONS, 0, 2, next(), now, now + 10});
  put((struct record){OPERATIONS, 0, 0, next(), 0, 0});
}

// HIP.

#ifndef ROCM_HEADERS
int hipGetDeviceCount(int *number) { return *number = 1, 0; }
int hipRuntimeGetVersion(int *version) { return *version = 60241133, 0; }
int hipDriverGetVersion(int *version) { return *version = 60241133, 0; }

int hipGetDevicePropertiesR0600(char *properties, int device) {
  call(1, now_ns());
  strcpy(properties, "AMD Instinct MI250X");
  *(uint64_t *)(properties + 288) = 64ull << 30;
  *(int *)(properties + 308) = 64;
  *(int *)(properties + 360) = 9;
  *(int *)(properties + 364) = 0;
  *(int *)(properties + 388) = 110;
  *(int *)(properties + 624) = 2048;
  *(uint64_t *)(properties + 640) = 64 << 10;
  *(int *)(properties + 648) = 65536;
  return device;
}
#endif
