// Calls on a file, many times: prints what one takes, in ns, and the longest one.
//   calls FILE WORKLOAD THREADS CALLS
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *file;
static const char *workload;
static long calls;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void once(int descriptor, char *buffer, long at) {
    if (!strcmp(workload, "pread0")) {
        if (pread(descriptor, buffer, 0, 0) != 0) abort();
    } else if (!strcmp(workload, "pread1")) {
        if (pread(descriptor, buffer, 1, at % 4096) != 1) abort();
    } else if (!strcmp(workload, "pread4096")) {
        if (pread(descriptor, buffer, 4096, (at % 64) * 4096) != 4096) abort();
    } else {
        int opened = open(file, O_RDONLY);
        if (read(opened, buffer, 4096) != 4096) abort();
        close(opened);
    }
}

static void *work(void *longest) {
    char buffer[4096];
    int descriptor = open(file, O_RDONLY);
    double most = 0, before = now_ns();
    for (long at = 0; at < calls; at++) {
        once(descriptor, buffer, at);
        // The clock is read often enough to see what stands still, and seldom enough to cost little.
        if (at % 64 == 63) {
            double now = now_ns();
            if (now - before > most) most = now - before;
            before = now;
        }
    }
    close(descriptor);
    *(double *)longest = most;
    return NULL;
}

// A process of one thread has quicker system calls. One with PyTorch has more.
static void *idle(void *nothing) {
    pause();
    return nothing;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    file = argv[1];
    workload = argv[2];
    int threads = atoi(argv[3]);
    calls = atol(argv[4]);
    pthread_t started[64];
    double longest[64];
    pthread_t other;
    if (pthread_create(&other, NULL, idle, NULL)) abort();
    double begin = now_ns();
    for (int at = 0; at < threads; at++) pthread_create(&started[at], NULL, work, &longest[at]);
    double most = 0;
    for (int at = 0; at < threads; at++) {
        pthread_join(started[at], NULL);
        if (longest[at] > most) most = longest[at];
    }
    printf("{\"ns\": %.1f, \"longest_64_ms\": %.3f}\n", (now_ns() - begin) / calls, most / 1e6);
    return 0;
}
