// An NVML of our own: known quantities for the devices of cuda.c, found by where they are on the bus.
#include <stdint.h>
#include <stdio.h>

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
    unsigned number;
    if (sscanf(bus_id, "0000:%x:00.0", &number) != 1) return 2;
    *device = (void *)(uintptr_t)number;
    return 0;
}
static unsigned index_of(void *device) { return (unsigned)(uintptr_t)device - 100; }
int nvmlDeviceGetUtilizationRates(void *device, uint32_t *percent) {
    percent[0] = 40 + index_of(device);
    percent[1] = 7;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, uint64_t *bytes) {
    bytes[0] = 80ull << 30;
    bytes[1] = 79ull << 30;
    bytes[2] = (1ull << 30) + index_of(device);
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, uint32_t clock, uint32_t *mhz) {
    (void)device;
    *mhz = clock == 1 ? 1980 : clock == 2 ? 2619 : 0;
    return 0;
}
// Not all devices tell their power.
int nvmlDeviceGetPowerUsage(void *device, uint32_t *mw) {
    *mw = 350000;
    return index_of(device) == 0 ? 0 : 3;
}
