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

#ifndef IS_OLD
int nvmlDeviceGetMaxClockInfo(void *device, uint32_t clock, uint32_t *mhz) {
    (void)device;
    *mhz = clock == 1 ? 2100 : 0;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, uint32_t sensor, uint32_t *celsius) {
    *celsius = 61 + index_of(device);
    return sensor == 0 ? 0 : 2;
}
// The power cap, and heat that software sees.
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, uint64_t *bits) {
    (void)device;
    *bits = 0x24;
    return 0;
}
#ifdef HAS_NEW_NAME
int nvmlDeviceGetCurrentClocksEventReasons(void *device, uint64_t *bits) {
    (void)device;
    *bits = 0x40;
    return 0;
}
#endif
int nvmlDeviceGetEnforcedPowerLimit(void *device, uint32_t *mw) {
    (void)device;
    *mw = 350000;
    return 0;
}
int nvmlDeviceGetPowerManagementLimitConstraints(void *device, uint32_t *lowest, uint32_t *highest) {
    (void)device;
    *lowest = 200000;
    *highest = 700000;
    return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, uint32_t *number) {
    (void)device;
    *number = 4;
    return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, uint32_t *lanes) {
    (void)device;
    *lanes = 8;
    return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, uint32_t *number) {
    (void)device;
    *number = 5;
    return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void *device, uint32_t *lanes) {
    (void)device;
    *lanes = 16;
    return 0;
}
#endif
