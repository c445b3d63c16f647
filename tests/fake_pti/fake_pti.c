// A libpti_view.so that makes its records up, and a libze_loader.so.1 with two GPUs, for tests on machines without one.
//
// Records are laid out as Intel's libraries of 0.10 to 1.2 do. The environment says which release it is:
//   FAKE_PTI_LONG=1     records as long as from 1.0 on
//   FAKE_PTI_OLD=1      calls carry names and no numbers, as before 0.11
//   FAKE_PTI_WITHOUT=5,11   views that are not implemented
//   FAKE_PTI_ODD=1      kernels of a length that no release has
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct kernel {
  uint32_t view;
  void *queue, *context;
  const char *name, *source_file;
  uint64_t source_line, kernel_id;
  uint32_t correlation, thread;
  char pci[16];
  uint8_t uuid[16];
  uint64_t append, start, end, submit, task_begin, enqueue_begin, node, sycl_queue;
  uint32_t invocation;
  uint64_t device, more;
};

struct copy {
  uint32_t view, type, source, destination;
  void *queue, *context;
  const char *name;
  char pci[16];
  uint8_t uuid[16];
  uint64_t id;
  uint32_t correlation, thread;
  uint64_t append, start, end, submit, bytes, sycl_queue, device, more;
};

struct copy_between {
  uint32_t view, type, source, destination;
  void *queue, *context;
  const char *name;
  char source_pci[16], destination_pci[16];
  uint8_t source_uuid[16], destination_uuid[16];
  uint64_t id;
  uint32_t correlation, thread;
  uint64_t append, start, end, submit, bytes, sycl_queue, source_device, destination_device, more;
};

struct fill {
  uint32_t view, memory;
  void *queue, *context;
  const char *name;
  char pci[16];
  uint8_t uuid[16];
  uint64_t id;
  uint32_t correlation, thread;
  uint64_t append, start, end, submit, bytes, value, sycl_queue, device, more;
};

struct call {
  uint32_t view;
  uint64_t start, end;
  uint32_t group, id, process, thread, correlation, status;
};

struct old_call {
  uint32_t view;
  const char *name;
  uint64_t start, end;
  uint32_t process, thread, correlation;
};

struct synchronization {
  uint32_t view, type;
  void *context, *queue, *event;
  uint64_t start, end;
  uint32_t thread, correlation, events, status, id, group;
};

struct overhead {
  uint32_t view;
  uint64_t start, end;
  uint32_t thread;
  uint64_t count, duration;
  uint32_t kind;
};

enum { KERNEL = 1, DRIVER = 3, OVERHEAD = 5, RUNTIME = 6, CORRELATION = 7, COPY = 8, FILL = 9, BETWEEN = 10, SYNC = 11 };

_Static_assert(sizeof(struct kernel) == 184 && sizeof(struct copy) == 152, "as long as those of 1.2");
_Static_assert(sizeof(struct copy_between) == 192 && sizeof(struct fill) == 152, "as long as those of 1.2");
_Static_assert(sizeof(struct call) == 48 && sizeof(struct old_call) == 48, "as long as those of 1.2 and 0.10");
_Static_assert(sizeof(struct synchronization) == 72 && sizeof(struct overhead) == 56, "as long as those of 1.2");

static int is_set(const char *name) { return getenv(name) != NULL; }

static size_t size_of(uint32_t view) {
  int is_long = is_set("FAKE_PTI_LONG");
  switch (view) {
    case KERNEL: return is_set("FAKE_PTI_ODD") ? 176 : is_long ? 184 : 168;
    case COPY: case FILL: return is_long ? 152 : 136;
    case BETWEEN: return is_long ? 192 : 168;
    case DRIVER: case RUNTIME: return 48;
    case OVERHEAD: return 56;
    case CORRELATION: return 24;
    case SYNC: return is_set("FAKE_PTI_OLD") ? 0 : 72;
    default: return 0;
  }
}

static void (*requested)(uint8_t **, size_t *);
static void (*completed)(uint8_t *, size_t, size_t);
// The library is asked on one thread while others use the device.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint32_t enabled;
static uint8_t *buffer;
static size_t room, used;
static uint32_t correlations;
static uint64_t now_offset = 1000000000000000ull;

uint64_t ptiViewGetTimestamp(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now_offset + now.tv_sec * 1000000000ull + now.tv_nsec;
}

const char *ptiVersionString(void) { return is_set("FAKE_PTI_OLD") ? "0.10.0" : is_set("FAKE_PTI_LONG") ? "1.2.0" : "0.12.3"; }
const char *ptiResultTypeToString(uint32_t status) { return status == 2 ? "PTI_ERROR_NOT_IMPLEMENTED" : "PTI_SUCCESS"; }
const char *ptiViewOverheadKindToString(uint32_t kind) { return kind == 3 ? "BUFFER_FLUSH" : "INVALID"; }

uint32_t ptiViewSetCallbacks(void (*on_requested)(uint8_t **, size_t *), void (*on_completed)(uint8_t *, size_t, size_t)) {
  requested = on_requested;
  completed = on_completed;
  return 0;
}

uint32_t ptiViewEnable(uint32_t view) {
  char text[16];
  const char *without = getenv("FAKE_PTI_WITHOUT");
  snprintf(text, sizeof text, ",%u,", view);
  if (without) {
    char all[64];
    snprintf(all, sizeof all, ",%s,", without);
    if (strstr(all, text)) return 2;
  }
  if (!requested) return 4;
  enabled |= 1u << view;
  return 0;
}

uint32_t ptiViewDisable(uint32_t view) {
  enabled &= ~(1u << view);
  return 0;
}

uint32_t fake_pti_enabled(void) { return enabled; }

uint32_t ptiFlushAllViews(void) {
  pthread_mutex_lock(&lock);
  if (buffer) completed(buffer, room, used);
  buffer = NULL;
  pthread_mutex_unlock(&lock);
  return 0;
}

uint32_t ptiViewGetNextRecord(uint8_t *base, size_t valid, uint8_t **record) {
  if (!record) return 3;
  if (!base || !valid) return 1;
  if (!*record) {
    *record = base;
    return 0;
  }
  size_t size = size_of(*(uint32_t *)*record);
  if (!size) return 3;
  if (*record + size == base + valid) return 1;
  *record += size;
  return 0;
}

static void put(const void *record, uint32_t view) {
  size_t size = size_of(view);
  if (!(enabled & 1u << view)) return;
  pthread_mutex_lock(&lock);
  if (buffer && room - used < size) ptiFlushAllViews();
  if (!buffer) {
    used = 0;
    requested(&buffer, &room);
    if (!buffer) abort();
  }
  memcpy(buffer + used, record, size);
  *(uint32_t *)(buffer + used) = view;
  used += size;
  pthread_mutex_unlock(&lock);
}

#ifndef FAKE_PTI_HAS_NO_IDS
uint32_t ptiViewGetApiIdName(uint32_t group, uint32_t id, const char **name) {
  if (group == 3 && id == 17) *name = "urEnqueueKernelLaunch";
  else if (group == 3 && id == 33) *name = "urEnqueueUSMMemcpy";
  else if (group == 1 && id == 57) *name = "zeCommandListAppendLaunchKernel";
  else return 7;
  return 0;
}

uint32_t ptiViewEnableRuntimeApiClass(uint32_t enable, uint32_t class, uint32_t group) {
  return enable == 1 && (class == 1 || class == 2) && group == 0x7fffffff ? 0 : 3;
}

uint32_t ptiViewEnableDriverApiClass(uint32_t enable, uint32_t class, uint32_t group) {
  return ptiViewEnableRuntimeApiClass(enable, class, group);
}
#endif

static const uint8_t UUIDS[2][16] = {{7, 1}, {7, 2}};
static int queues[4], contexts[1];

static uint32_t enqueue(uint32_t id, const char *name, uint64_t start) {
  uint32_t thread = (uint32_t)syscall(SYS_gettid), correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
#ifdef FAKE_PTI_HAS_NO_IDS
  struct old_call call = {RUNTIME, name, start, start + 2000, getpid(), thread, correlation};
#else
  struct call call = {RUNTIME, start, start + 2000, 3, id, getpid(), thread, correlation, 0};
  struct call driver = {DRIVER, start + 500, start + 1500, 1, 57, getpid(), thread, correlation, 0};
  if (id == 17) put(&driver, DRIVER);
#endif
  put(&call, RUNTIME);
  return correlation;
}

// A kernel of `ns` on a device and a queue, enqueued by this thread now. It ends when the call does and `ns` later.
void fake_pti_kernel(const char *name, uint32_t device, uint32_t queue, uint64_t ns) {
  uint64_t now = ptiViewGetTimestamp();
  uint32_t correlation = enqueue(17, "piEnqueueKernelLaunch", now);
  struct kernel kernel = {.queue = &queues[queue], .context = contexts, .name = name, .correlation = correlation,
                          .start = now + 2000, .end = now + 2000 + ns, .sycl_queue = 100 + queue};
  memcpy(kernel.uuid, UUIDS[device], 16);
  put(&kernel, KERNEL);
}

// A copy from a kind of memory to another.
void fake_pti_copy(uint32_t source, uint32_t destination, uint64_t bytes, uint32_t device, uint32_t queue, uint64_t ns) {
  uint64_t now = ptiViewGetTimestamp();
  struct copy copy = {.source = source, .destination = destination, .queue = &queues[queue], .context = contexts,
                      .name = "zeCommandListAppendMemoryCopy", .correlation = enqueue(33, "piextUSMEnqueueMemcpy", now),
                      .start = now + 2000, .end = now + 2000 + ns, .bytes = bytes, .sycl_queue = 100 + queue};
  memcpy(copy.uuid, UUIDS[device], 16);
  put(&copy, COPY);
}

// A copy of the first device's memory to the second's, a fill, a wait for the queue, and overhead, of 3000 ns each.
void fake_pti_others(uint32_t queue) {
  uint64_t now = ptiViewGetTimestamp(), end = now + 3000;
  uint32_t thread = (uint32_t)syscall(SYS_gettid);
  struct copy_between between = {.source = 2, .destination = 2, .queue = &queues[queue], .context = contexts,
                                 .start = now, .end = end, .bytes = 4096, .sycl_queue = UINT64_MAX};
  memcpy(between.source_uuid, UUIDS[0], 16);
  memcpy(between.destination_uuid, UUIDS[1], 16);
  put(&between, BETWEEN);
  struct fill fill = {.memory = 2, .queue = &queues[queue], .context = contexts, .start = now, .end = end,
                      .bytes = 512, .value = 4, .sycl_queue = 100 + queue};
  memcpy(fill.uuid, UUIDS[0], 16);
  put(&fill, FILL);
  struct synchronization wait = {.type = 6, .context = contexts, .queue = &queues[queue], .start = now, .end = end,
                                 .thread = thread, .correlation = ++correlations, .id = 32, .group = 1};
  put(&wait, SYNC);
  struct overhead overhead = {.start = now, .end = end, .thread = thread, .kind = 3};
  put(&overhead, OVERHEAD);
}

// A kernel without times.
void fake_pti_broken(void) {
  struct kernel kernel = {.name = "no times", .queue = &queues[0], .context = contexts};
  put(&kernel, KERNEL);
}

// Level Zero.

uint32_t zeInit(uint32_t flags) { return is_set("FAKE_PTI_NO_DRIVER") ? 0x78000001 : flags; }

static uint32_t listed(uint32_t *count, void **list, int *things, uint32_t present) {
  if (is_set("FAKE_PTI_NO_DRIVER")) return 0x78000001;
  for (uint32_t index = 0; list && index < *count && index < present; index++) list[index] = &things[index];
  *count = present;
  return 0;
}

static int drivers[1], devices[3];

uint32_t zeDriverGet(uint32_t *count, void **list) { return listed(count, list, drivers, 1); }
uint32_t zeDeviceGet(void *driver, uint32_t *count, void **list) { return listed(count, list, devices, 3); }

uint32_t zeDriverGetProperties(void *driver, void *properties) {
  if (*(uint32_t *)properties != 1) return 1;
  ((uint32_t *)properties)[8] = 1u << 24 | 6u << 16 | 33578;
  return 0;
}

// The first device is not a GPU.
uint32_t zeDeviceGetProperties(void *device, void *properties) {
  uint32_t index = (int *)device - devices, *words = properties;
  if (words[0] != 3) return 1;
  words[4] = index ? 1 : 2;
  words[17] = 8;
  words[18] = 16;
  if (index) memcpy((char *)properties + 96, UUIDS[index - 1], 16);
  strcpy((char *)properties + 112, index ? "Intel(R) Data Center GPU Max 1550" : "a processor");
  return 0;
}

uint32_t zeDeviceGetMemoryProperties(void *device, uint32_t *count, void *properties) {
  for (uint32_t index = 0; properties && index < *count; index++) {
    if (*(uint32_t *)((char *)properties + index * 296) != 7) return 1;
    *(uint64_t *)((char *)properties + index * 296 + 32) = 32ull << 30;
  }
  *count = 2;
  return 0;
}
