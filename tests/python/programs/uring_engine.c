/* A library that reads and writes by io_uring, with liburing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char buffer[1 << 20];

/* Gives 0, else the line that went wrong. */
#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

/* Whether the system lets the program use it. */
int can_use(void) {
    struct io_uring ring;
    if (io_uring_queue_init(8, &ring, 0) != 0) return 0;
    io_uring_queue_exit(&ring);
    return 1;
}

/* Whether calls lead to the recorder. Those of the other functions by the same object do, too, then. */
int is_recorded(void) {
    Dl_info info;
    return dladdr((void *)io_uring_submit, &info) && strstr(info.dli_fname, "libstepscope_files") != NULL;
}

/* Waits for some requests, and gives what they moved. */
static int64_t fetch(struct io_uring *ring, int count) {
    int64_t moved = 0;
    for (; count > 0; count--) {
        struct io_uring_cqe *over;
        if (io_uring_wait_cqe(ring, &over) != 0) return -1;
        moved += over->res;
        io_uring_cqe_seen(ring, over);
    }
    return moved;
}

static void read_at(struct io_uring *ring, int file, unsigned bytes, uint64_t offset, uint64_t number) {
    struct io_uring_sqe *request = io_uring_get_sqe(ring);
    io_uring_prep_read(request, file, buffer, bytes, offset);
    request->user_data = number;
}

int swap(const char *path) {
    struct io_uring ring;
    CHECK(io_uring_queue_init(8, &ring, 0) == 0);
    int file = open(path, O_RDWR);
    struct iovec *vectors = malloc(4 * sizeof *vectors);
    for (int at = 0; at < 4; at++)
        vectors[at] = (struct iovec){buffer, at % 2 ? 2000 : 1000};
    read_at(&ring, file, 4096, 0, 1);
    struct io_uring_sqe *request = io_uring_get_sqe(&ring);
    io_uring_prep_write(request, file, buffer, 8192, 4096);
    request->user_data = 2;
    /* Behind the end, and at it. */
    read_at(&ring, file, 512, 1 << 20, 3);
    read_at(&ring, file, 500, 49900, 4);
    request = io_uring_get_sqe(&ring);
    io_uring_prep_readv(request, file, vectors, 2, 100);
    request->user_data = 5;
    request = io_uring_get_sqe(&ring);
    io_uring_prep_writev(request, file, vectors + 2, 2, 200);
    request->user_data = 6;
    CHECK(io_uring_submit(&ring) == 6);
    /* The system has all that it needs to know of them. */
    memset(vectors, 0xff, 4 * sizeof *vectors);
    free(vectors);
    int copy = dup(file);
    close(file);
    CHECK(fetch(&ring, 6) == 4096 + 8192 + 100 + 3000 + 3000);
    /* Of this one it looks the descriptor up later. */
    request = io_uring_get_sqe(&ring);
    io_uring_prep_fsync(request, copy, 0);
    CHECK(io_uring_submit(&ring) == 1 && fetch(&ring, 1) == 0);
    close(copy);

    /* What is not watched, and what cannot be read. */
    int zeros = open("/dev/zero", O_RDONLY), other = open(path, O_WRONLY);
    read_at(&ring, zeros, 64, 0, 1);
    read_at(&ring, other, 101, 0, 2);
    CHECK(io_uring_submit(&ring) == 2);
    CHECK(fetch(&ring, 2) == 64 - EBADF);
    close(other);

    /* Several requests with the same number, which the program takes at once by code of its own. */
    file = open(path, O_RDONLY);
    for (int at = 0; at < 3; at++)
        read_at(&ring, file, 1001, 1000 * at, 0);
    CHECK(io_uring_submit_and_wait(&ring, 3) == 3);
    io_uring_cq_advance(&ring, 3);
    struct io_uring_cqe *several[4];
    for (int at = 0; at < 2; at++)
        read_at(&ring, file, 1002, 1000 * at, 0);
    CHECK(io_uring_submit_and_wait(&ring, 2) == 2 && io_uring_peek_batch_cqe(&ring, several, 4) == 2);
    io_uring_cq_advance(&ring, 2);

    /* Where the file stands, which moves. */
    read_at(&ring, file, 10, -1, 0);
    CHECK(io_uring_submit(&ring) == 1 && fetch(&ring, 1) == 10);
    CHECK(read(file, buffer, 20) == 20);

    /* A registered file, and one that is opened and closed by requests. */
    int files[2] = {zeros, file};
    CHECK(io_uring_register_files(&ring, files, 2) == 0);
    close(file);
    read_at(&ring, 1, 1003, 7, 0);
    ring.sq.sqes[(ring.sq.sqe_tail - 1) & *ring.sq.kring_mask].flags |= IOSQE_FIXED_FILE;
    read_at(&ring, 0, 1004, 7, 1);
    ring.sq.sqes[(ring.sq.sqe_tail - 1) & *ring.sq.kring_mask].flags |= IOSQE_FIXED_FILE;
    CHECK(io_uring_submit(&ring) == 2 && fetch(&ring, 2) == 2007);
    request = io_uring_get_sqe(&ring);
    io_uring_prep_openat(request, AT_FDCWD, path, O_RDONLY, 0);
    struct io_uring_cqe *over;
    CHECK(io_uring_submit(&ring) == 1 && io_uring_wait_cqe(&ring, &over) == 0);
    file = over->res;
    io_uring_cqe_seen(&ring, over);
    CHECK(pread(file, buffer, 1005, 8) == 1005);
    request = io_uring_get_sqe(&ring);
    io_uring_prep_close(request, file);
    CHECK(io_uring_submit(&ring) == 1 && fetch(&ring, 1) == 0);
    /* Nobody sees this being opened, under the same descriptor. */
    request = io_uring_get_sqe(&ring);
    io_uring_prep_openat(request, AT_FDCWD, "/dev/zero", O_RDONLY, 0);
    CHECK(io_uring_submit(&ring) == 1 && fetch(&ring, 1) == file);
    CHECK(pread(file, buffer, 1006, 0) == 1006);
    close(file);
    close(zeros);

    /* The program never asks liburing for these, and ends. */
    file = open(path, O_RDONLY);
    read_at(&ring, file, 1007, 9, 0);
    CHECK(io_uring_submit(&ring) == 1);
    while (io_uring_cq_ready(&ring) == 0) {}
    io_uring_cq_advance(&ring, 1);
    io_uring_queue_exit(&ring);
    close(file);

    /* Without a file. */
    CHECK(io_uring_queue_init(8, &ring, 0) == 0);
    read_at(&ring, -1, 1008, 9, 0);
    CHECK(io_uring_submit(&ring) == 1 && fetch(&ring, 1) == -EBADF);
    io_uring_queue_exit(&ring);
    return 0;
}

enum { ROUNDS = 500, AT_ONCE = 16 };

static void *read_many(void *path) {
    struct io_uring ring;
    if (io_uring_queue_init(AT_ONCE, &ring, 0) != 0) return NULL;
    int file = open(path, O_RDONLY);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned at = 0; at < AT_ONCE; at++)
            read_at(&ring, file, 1 + at, round * AT_ONCE + at, at);
        if (io_uring_submit(&ring) != AT_ONCE || fetch(&ring, AT_ONCE) != AT_ONCE * (AT_ONCE + 1) / 2) return NULL;
    }
    close(file);
    io_uring_queue_exit(&ring);
    return path;
}

/* Each thread reads a file through a ring of its own. */
int read_in_threads(char *one, char *other) {
    pthread_t threads[2];
    char *paths[2] = {one, other};
    for (int at = 0; at < 2; at++)
        CHECK(pthread_create(&threads[at], NULL, read_many, paths[at]) == 0);
    for (int at = 0; at < 2; at++) {
        void *path;
        CHECK(pthread_join(threads[at], &path) == 0 && path == paths[at]);
    }
    return 0;
}
