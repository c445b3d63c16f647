// A driver of CUDA of our own, as far as the recorder asks: devices with known properties, of which a test says which
// are in use.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_initialized, in_use, calls_of_init;

void fake_use(int devices) { is_initialized = 1; in_use = devices; }
int fake_calls_of_init(void) { return calls_of_init; }

static int count(void) {
    const char *given = getenv("CUDA_FAKE_GPUS");
    return given ? atoi(given) : 2;
}

int cuInit(unsigned flags) {
    (void)flags;
    calls_of_init++;
    // A line for each process that uses the driver.
    FILE *log = getenv("CUDA_FAKE_LOG") ? fopen(getenv("CUDA_FAKE_LOG"), "a") : NULL;
    if (log) fprintf(log, "%d\n", getpid()), fclose(log);
    if (getenv("CUDA_FAKE_FAILS")) return atoi(getenv("CUDA_FAKE_FAILS"));
    is_initialized = 1;
    return 0;
}
int cuDriverGetVersion(int *version) { *version = 13010; return 0; }
int cuDeviceGetCount(int *number) { *number = count(); return is_initialized ? 0 : 3; }
int cuDeviceGet(int *device, int index) { *device = 100 + index; return index < count() ? 0 : 101; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Fake GPU %d", device - 100); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 80000000000 + device; return 0; }
int cuDeviceGetPCIBusId(char *text, int size, int device) {
    snprintf(text, size, "0000:%02x:00.0", device);
    return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active) {
    *flags = 0;
    *is_active = in_use >> (device - 100) & 1;
    return 0;
}
int cuDeviceGetAttribute(int *value, int which, int device) {
    static const int known[][2] = {{10, 32}, {16, 132}, {39, 2048}, {75, 9}, {76, 0}, {81, 233472}, {82, 65536}};
    (void)device;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i][0] == which) {
            *value = known[i][1];
            return 0;
        }
    }
    return 1;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == 100 ? "no CUDA-capable device is detected" : "another error";
    return 0;
}

#include "cuda_work.c"
