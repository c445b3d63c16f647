/* Calls each function of files of the C library that is recorded, by its name, on a file of that name in the current folder.
 *
 * Prints for each what it gave back and which error it left: as it does when it is not recorded. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define MISSING "missing/file"

static char buffer[1 << 16];
static struct iovec vectors[2] = {{buffer, 100}, {buffer + 100, 200}};
static char answer[4096];
static char said[1 << 16];
static size_t said_len;
/* The function that is called, as it is named and exported. */
static const char *name;

/* Says what a call gave back. Descriptors and addresses are not compared. */
static long say(long returned) {
    int left = errno;
    said_len += snprintf(said + said_len, sizeof said - said_len, "%s %ld %d\n", name, returned, left);
    errno = EXDEV;
    return returned;
}

#define SAY(call) (errno = EXDEV, say((long)(call)))
#define SAY_IF(call) (errno = EXDEV, say((call) ? 1 : 0))

struct open_way {
    unsigned long flags, mode, resolve;
};

static int system_openat2(int folder, const char *path, struct open_way *how, size_t len) {
    return syscall(SYS_openat2, folder, path, how, len);
}

static void *found(const char *symbol) {
    void *function = dlsym(RTLD_DEFAULT, symbol);
    /* Newer C libraries have it. */
    if (function == NULL && strcmp(symbol, "openat2") == 0)
        function = (void *)system_openat2;
    if (function == NULL) {
        printf("%s is missing\n", symbol);
        exit(1);
    }
    name = symbol;
    return function;
}

/* The block is run with `call`, each of the functions of a type that are named. */
#define EACH(type, ...) \
    for (const char *names[] = {__VA_ARGS__, NULL}, **at = names; *at != NULL; at++) \
        for (__typeof__(type) *call = (__typeof__(type) *)found(*at); call != NULL; call = NULL)

/* A file that exists is opened, and one that does not. */
static void opens(void) {
    EACH(int(const char *, int, ...), "open", "open64") {
        int file = call(name, O_RDWR);
        SAY_IF(file >= 0);
        close(file);
        SAY(call(MISSING, O_RDONLY));
        file = call("made", O_RDWR | O_CREAT, 0640);
        struct stat is;
        fstat(file, &is);
        SAY(is.st_mode & 0777);
        close(file);
        unlink("made");
    }
    EACH(int(const char *, int), "__open_2", "__open64_2") {
        int file = call(name, O_RDWR);
        SAY_IF(file >= 0);
        close(file);
        SAY(call(MISSING, O_RDONLY));
    }
    int folder = open("folder", O_RDONLY);
    EACH(int(int, const char *, int, ...), "openat", "openat64") {
        int file = call(AT_FDCWD, name, O_RDWR);
        SAY_IF(file >= 0);
        close(file);
        file = call(folder, name, O_RDWR | O_CREAT, 0600);
        SAY_IF(file >= 0);
        close(file);
        SAY(call(folder, MISSING, O_RDONLY));
    }
    EACH(int(int, const char *, int), "__openat_2", "__openat64_2") {
        int file = call(AT_FDCWD, name, O_RDWR);
        SAY_IF(file >= 0);
        close(file);
        SAY(call(folder, MISSING, O_RDONLY));
    }
    EACH(int(int, const char *, struct open_way *, size_t), "openat2") {
        struct open_way how = {.flags = O_RDWR};
        int file = call(AT_FDCWD, name, &how, sizeof how);
        SAY_IF(file >= 0);
        SAY(read(file, buffer, 10));
        close(file);
        SAY(call(folder, MISSING, &how, sizeof how));
        /* The folder is the root. */
        how.resolve = 0x10;
        file = call(folder, "/openat", &how, sizeof how);
        SAY_IF(file >= 0);
        close(file);
    }
    close(folder);
    EACH(int(const char *, mode_t), "creat", "creat64") {
        int file = call(name, 0600);
        SAY_IF(file >= 0);
        SAY(write(file, buffer, 10));
        SAY(read(file, buffer, 10));
        close(file);
        SAY(call(MISSING, 0600));
    }
}

static void descriptors(void) {
    EACH(int(int), "close") {
        int file = open(name, O_RDONLY);
        SAY(call(file));
        SAY(call(file));
    }
    EACH(int(unsigned, unsigned, int), "close_range") {
        int file = open(name, O_RDONLY);
        SAY(call(file, file, 0));
        SAY(read(file, buffer, 10));
    }
    EACH(int(int), "dup") {
        int file = open(name, O_RDONLY), copy = call(file);
        SAY(read(copy, buffer, 10));
        close(file);
        SAY(read(copy, buffer, 20));
        close(copy);
    }
    EACH(int(int, int), "dup2") {
        int file = open(name, O_RDONLY);
        SAY(call(file, 700));
        SAY(call(file, file) == file);
        SAY(call(file, -1));
        SAY(read(700, buffer, 10));
        close(700);
        close(file);
    }
    EACH(int(int, int, int), "dup3") {
        int file = open(name, O_RDONLY);
        SAY(call(file, 700, O_CLOEXEC));
        SAY(call(file, file, 0));
        SAY(read(700, buffer, 10));
        close(700);
        close(file);
    }
    EACH(int(int, int, ...), "fcntl", "fcntl64") {
        int file = open(name, O_RDWR), copy = call(file, F_DUPFD, 710), other = call(file, F_DUPFD_CLOEXEC, 720);
        SAY(copy + other);
        SAY(read(copy, buffer, 10));
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
        SAY(call(file, F_SETLK, &lock));
        SAY(call(file, F_OFD_SETLK, &lock));
        SAY(call(file, F_SETFL, O_APPEND));
        close(copy);
        close(other);
        close(file);
    }
}

static void reads(void) {
    EACH(ssize_t(int, void *, size_t), "read") {
        int file = open(name, O_RDONLY), written = open(name, O_WRONLY);
        SAY(call(file, buffer, 100));
        SAY(call(file, buffer, 20000));
        SAY(call(file, buffer, 100));
        SAY(call(written, buffer, 100));
        close(file);
        close(written);
    }
    EACH(ssize_t(int, void *, size_t, size_t), "__read_chk") {
        int file = open(name, O_RDONLY), written = open(name, O_WRONLY);
        SAY(call(file, buffer, 100, sizeof buffer));
        SAY(call(written, buffer, 100, sizeof buffer));
        close(file);
        close(written);
    }
    EACH(ssize_t(int, void *, size_t, off_t), "pread", "pread64") {
        int file = open(name, O_RDONLY);
        SAY(call(file, buffer, 100, 9950));
        SAY(call(file, buffer, 100, -1));
        close(file);
    }
    EACH(ssize_t(int, void *, size_t, off_t, size_t), "__pread_chk", "__pread64_chk") {
        int file = open(name, O_RDONLY);
        SAY(call(file, buffer, 100, 9950, sizeof buffer));
        SAY(call(file, buffer, 100, -1, sizeof buffer));
        close(file);
    }
    EACH(ssize_t(int, const struct iovec *, int), "readv") {
        int file = open(name, O_RDONLY);
        SAY(call(file, vectors, 2));
        SAY(call(file, vectors, -1));
        close(file);
    }
    EACH(ssize_t(int, const struct iovec *, int, off_t), "preadv", "preadv64") {
        int file = open(name, O_RDONLY);
        SAY(call(file, vectors, 2, 9950));
        SAY(call(file, vectors, 2, -1));
        close(file);
    }
    EACH(ssize_t(int, const struct iovec *, int, off_t, int), "preadv2", "preadv64v2") {
        int file = open(name, O_RDONLY);
        SAY(call(file, vectors, 2, 9950, 0));
        SAY(call(file, vectors, 2, -1, 0));
        SAY(call(file, vectors, 2, 0, 1 << 20));
        close(file);
    }
}

static void writes(void) {
    EACH(ssize_t(int, const void *, size_t), "write") {
        int file = open(name, O_WRONLY), read_only = open(name, O_RDONLY), appended = open(name, O_WRONLY | O_APPEND);
        SAY(call(file, buffer, 100));
        SAY(call(read_only, buffer, 100));
        SAY(call(appended, buffer, 50));
        close(file);
        close(read_only);
        close(appended);
    }
    EACH(ssize_t(int, const void *, size_t, off_t), "pwrite", "pwrite64") {
        int file = open(name, O_WRONLY);
        SAY(call(file, buffer, 100, 500));
        SAY(call(file, buffer, 100, -1));
        close(file);
    }
    EACH(ssize_t(int, const struct iovec *, int), "writev") {
        int file = open(name, O_WRONLY);
        SAY(call(file, vectors, 2));
        SAY(call(file, vectors, -1));
        close(file);
    }
    EACH(ssize_t(int, const struct iovec *, int, off_t), "pwritev", "pwritev64") {
        int file = open(name, O_WRONLY);
        SAY(call(file, vectors, 2, 500));
        SAY(call(file, vectors, 2, -1));
        close(file);
    }
    EACH(ssize_t(int, const struct iovec *, int, off_t, int), "pwritev2", "pwritev64v2") {
        int file = open(name, O_WRONLY);
        SAY(call(file, vectors, 2, 500, 0));
        SAY(call(file, vectors, 2, -1, 0));
        SAY(call(file, vectors, 2, 0, 1 << 20));
        close(file);
    }
}

/* From file to file, and to a pipe. */
static void between(void) {
    EACH(ssize_t(int, int, off_t *, size_t), "sendfile", "sendfile64") {
        int file = open(name, O_RDONLY), to = open("target", O_WRONLY);
        off_t place = 100;
        SAY(call(to, file, &place, 1000));
        SAY(call(to, file, NULL, 20000));
        SAY(call(file, file, NULL, 10));
        SAY(lseek(file, 0, SEEK_CUR));
        close(file);
        close(to);
    }
    EACH(ssize_t(int, off_t *, int, off_t *, size_t, unsigned), "copy_file_range") {
        int file = open(name, O_RDONLY), to = open("target", O_RDWR);
        off_t place = 100;
        SAY(call(file, &place, to, NULL, 1000, 0));
        SAY(call(file, NULL, to, NULL, 1000, 0));
        SAY(call(file, NULL, file, NULL, 1000, 0));
        close(file);
        close(to);
    }
    EACH(ssize_t(int, off_t *, int, off_t *, size_t, unsigned), "splice") {
        int file = open(name, O_RDONLY), to = open("target", O_RDWR), ends[2];
        off_t place = 100;
        if (pipe(ends) != 0)
            exit(1);
        SAY(call(file, &place, ends[1], NULL, 1000, 0));
        SAY(call(ends[0], NULL, to, NULL, 1000, 0));
        SAY(call(file, NULL, to, NULL, 1000, 0));
        close(file);
        close(to);
        close(ends[0]);
        close(ends[1]);
    }
}

static void positions(void) {
    EACH(off_t(int, off_t, int), "lseek", "lseek64") {
        int file = open(name, O_RDONLY);
        SAY(call(file, 500, SEEK_SET));
        SAY(read(file, buffer, 10));
        SAY(call(file, -1, SEEK_SET));
        SAY(call(file, -100, SEEK_END));
        SAY(read(file, buffer, 1000));
        close(file);
    }
    EACH(int(int), "fsync", "fdatasync") {
        int file = open(name, O_RDWR);
        SAY(call(file));
        close(file);
    }
    EACH(int(int, off_t, off_t, unsigned), "sync_file_range") {
        int file = open(name, O_RDWR);
        SAY(call(file, 0, 100, SYNC_FILE_RANGE_WRITE));
        SAY(call(file, -1, 100, SYNC_FILE_RANGE_WRITE));
        close(file);
    }
    EACH(int(int, off_t), "ftruncate", "ftruncate64") {
        int file = open(name, O_RDWR);
        SAY(call(file, 100));
        SAY(call(file, -1));
        close(file);
    }
    EACH(int(const char *, off_t), "truncate", "truncate64") {
        SAY(call(name, 100));
        SAY(call(MISSING, 100));
    }
    EACH(int(int, int, off_t, off_t), "fallocate", "fallocate64") {
        int file = open(name, O_RDWR);
        SAY(call(file, 0, 0, 20000));
        SAY(call(file, 0, 0, 0));
        close(file);
    }
    EACH(int(int, off_t, off_t), "posix_fallocate", "posix_fallocate64") {
        int file = open(name, O_RDWR), read_only = open(name, O_RDONLY);
        SAY(call(file, 10, 20000));
        SAY(call(read_only, 10, 20000));
        close(file);
        close(read_only);
    }
    EACH(int(int, off_t, off_t, int), "posix_fadvise", "posix_fadvise64") {
        int file = open(name, O_RDWR);
        SAY(call(file, 10, 100, POSIX_FADV_WILLNEED));
        SAY(call(file, 10, 100, 77));
        close(file);
    }
    EACH(ssize_t(int, off_t, size_t), "readahead") {
        int file = open(name, O_RDONLY), written = open(name, O_WRONLY);
        SAY(call(file, 0, 4096));
        SAY(call(written, 0, 4096));
        close(file);
        close(written);
    }
    EACH(int(int, int), "flock") {
        int file = open(name, O_RDONLY), other = open(name, O_RDONLY);
        SAY(call(file, LOCK_EX));
        SAY(call(other, LOCK_EX | LOCK_NB));
        close(file);
        close(other);
    }
    EACH(int(int, mode_t), "fchmod") {
        int file = open(name, O_RDONLY);
        SAY(call(file, 0600));
        close(file);
    }
}

static void asked(void) {
    EACH(int(const char *, void *), "stat", "stat64", "lstat", "lstat64") {
        SAY(call(name, answer));
        SAY(call(MISSING, answer));
    }
    EACH(int(int, const char *, void *), "__xstat", "__xstat64", "__lxstat", "__lxstat64") {
        SAY(call(1, name, answer));
        SAY(call(1, MISSING, answer));
    }
    EACH(int(int, void *), "fstat", "fstat64") {
        int file = open(name, O_RDONLY);
        SAY(call(file, answer));
        close(file);
    }
    EACH(int(int, int, void *), "__fxstat", "__fxstat64") {
        int file = open(name, O_RDONLY);
        SAY(call(1, file, answer));
        close(file);
    }
    int folder = open("folder", O_RDONLY);
    EACH(int(int, const char *, void *, int), "fstatat", "fstatat64") {
        SAY(call(AT_FDCWD, name, answer, 0));
        SAY(call(folder, name, answer, 0));
    }
    EACH(int(int, int, const char *, void *, int), "__fxstatat", "__fxstatat64") {
        SAY(call(1, AT_FDCWD, name, answer, 0));
        SAY(call(1, folder, name, answer, 0));
    }
    EACH(int(int, const char *, int, unsigned, void *), "statx") {
        SAY(call(AT_FDCWD, name, 0, STATX_BASIC_STATS, answer));
        SAY(call(folder, name, 0, STATX_BASIC_STATS, answer));
    }
    EACH(int(const char *, int), "access") {
        SAY(call(name, R_OK));
        SAY(call(MISSING, R_OK));
    }
    EACH(int(int, const char *, int, int), "faccessat") {
        SAY(call(AT_FDCWD, name, R_OK, 0));
        SAY(call(folder, name, R_OK, 0));
    }
    EACH(int(int, void *, size_t), "getdents64") {
        int listed = open(name, O_RDONLY);
        SAY(call(listed, answer, sizeof answer));
        close(listed);
    }
    close(folder);
    EACH(ssize_t(const char *, char *, size_t), "readlink") {
        SAY(call(name, answer, sizeof answer));
        SAY(call(MISSING, answer, sizeof answer));
    }
    EACH(ssize_t(const char *, char *, size_t, size_t), "__readlink_chk") {
        SAY(call(name, answer, sizeof answer, sizeof answer));
    }
    EACH(ssize_t(int, const char *, char *, size_t), "readlinkat") {
        SAY(call(AT_FDCWD, name, answer, sizeof answer));
    }
    EACH(ssize_t(int, const char *, char *, size_t, size_t), "__readlinkat_chk") {
        SAY(call(AT_FDCWD, name, answer, sizeof answer, sizeof answer));
    }
}

/* What is removed is made again, as the others need it. */
static void names_of_files(void) {
    EACH(int(const char *, const char *), "rename", "link") {
        SAY(call(name, "renamed"));
        SAY(call(MISSING, "renamed"));
        remove("renamed");
    }
    EACH(int(int, const char *, int, const char *), "renameat") {
        SAY(call(AT_FDCWD, name, AT_FDCWD, "renamed"));
        remove("renamed");
    }
    EACH(int(int, const char *, int, const char *, unsigned), "renameat2") {
        SAY(call(AT_FDCWD, name, AT_FDCWD, "renamed", 0));
        remove("renamed");
    }
    EACH(int(int, const char *, int, const char *, int), "linkat") {
        SAY(call(AT_FDCWD, name, AT_FDCWD, "renamed", 0));
        remove("renamed");
    }
    EACH(int(const char *), "unlink", "remove", "rmdir") {
        SAY(call(name));
        SAY(call(name));
    }
    EACH(int(int, const char *, int), "unlinkat") {
        SAY(call(AT_FDCWD, name, 0));
        SAY(call(AT_FDCWD, name, 0));
    }
    EACH(int(const char *, mode_t), "mkdir", "chmod") {
        SAY(call(name, 0700));
        SAY(call(MISSING, 0700));
    }
    EACH(int(int, const char *, mode_t), "mkdirat") {
        SAY(call(AT_FDCWD, name, 0700));
    }
    EACH(int(int, const char *, mode_t, int), "fchmodat") {
        SAY(call(AT_FDCWD, name, 0700, 0));
    }
    EACH(int(const char *, const char *), "symlink") {
        SAY(call("target", name));
        SAY(call("target", name));
    }
    EACH(int(const char *, int, const char *), "symlinkat") {
        SAY(call("target", AT_FDCWD, name));
    }
}

static void folders(void) {
    EACH(DIR *(const char *), "opendir") {
        DIR *folder = call(name);
        SAY_IF(folder != NULL);
        closedir(folder);
        SAY_IF(call(MISSING) != NULL);
    }
    EACH(DIR *(int), "fdopendir") {
        DIR *folder = call(open(name, O_RDONLY));
        SAY_IF(folder != NULL);
        closedir(folder);
    }
    EACH(struct dirent *(DIR *), "readdir", "readdir64") {
        DIR *folder = opendir(name);
        SAY_IF(call(folder) != NULL);
        SAY_IF(call(folder) != NULL);
        SAY_IF(call(folder) != NULL);
        closedir(folder);
    }
    EACH(int(DIR *), "closedir") {
        SAY(call(opendir(name)));
    }
}

static void maps(void) {
    EACH(void *(void *, size_t, int, int, int, off_t), "mmap", "mmap64") {
        int file = open(name, O_RDWR);
        void *mapped = call(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, PAGE);
        SAY_IF(mapped != MAP_FAILED);
        SAY_IF(call(NULL, 0, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED);
        munmap(mapped, 2 * PAGE);
        close(file);
    }
    EACH(int(void *, size_t), "munmap") {
        int file = open(name, O_RDWR);
        char *mapped = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0);
        SAY(call(mapped + PAGE, PAGE));
        SAY(call(mapped + 1, PAGE));
        SAY(call(mapped, 1));
        close(file);
    }
    EACH(int(void *, size_t, int), "madvise", "msync") {
        int file = open(name, O_RDWR);
        char *mapped = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0);
        SAY(call(mapped + PAGE, PAGE, strcmp(name, "msync") == 0 ? MS_SYNC : MADV_WILLNEED));
        SAY(call(mapped, PAGE, 7777));
        munmap(mapped, 2 * PAGE);
        close(file);
    }
}

/* What was mapped is followed where it moves. */
static void moved_maps(void) {
    EACH(void *(void *, size_t, size_t, int, ...), "mremap") {
        int file = open(name, O_RDWR);
        char *mapped = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, PAGE);
        char *room = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mapped = call(mapped, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE);
        SAY_IF(mapped != MAP_FAILED);
        SAY_IF(call(mapped + 1, PAGE, PAGE, MREMAP_MAYMOVE) != MAP_FAILED);
        SAY_IF(call(mapped, 3 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room) == room);
        SAY(madvise(room + PAGE, PAGE, MADV_WILLNEED));
        /* Once more, at two places. */
        char *other = call(room, 0, PAGE, MREMAP_MAYMOVE);
        SAY_IF(other != MAP_FAILED);
        munmap(other, PAGE);
        munmap(room, 4 * PAGE);
        close(file);
    }
    EACH(int(void *, size_t, int), "posix_madvise") {
        int file = open(name, O_RDWR);
        char *mapped = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0);
        SAY(call(mapped + PAGE, PAGE, POSIX_MADV_WILLNEED));
        SAY(call(mapped, PAGE, 7777));
        munmap(mapped, 2 * PAGE);
        close(file);
    }
}

/* In a folder of the function's name, under names that the C library finds. */
static char *template(const char *end) {
    static char path[100];
    snprintf(path, sizeof path, "%s/XXXXXX%s", name, end);
    return path;
}

static void temporary(void) {
    EACH(int(char *), "mkstemp", "mkstemp64") {
        int file = call(template(""));
        SAY(write(file, buffer, 10));
        close(file);
        char missing[] = "missing/XXXXXX";
        SAY(call(missing));
    }
    EACH(int(char *, int), "mkostemp", "mkostemp64") {
        int file = call(template(""), O_APPEND);
        SAY(write(file, buffer, 10));
        close(file);
    }
    EACH(int(char *, int), "mkstemps", "mkstemps64") {
        int file = call(template(".txt"), 4);
        SAY(write(file, buffer, 10));
        close(file);
    }
    EACH(int(char *, int, int), "mkostemps", "mkostemps64") {
        int file = call(template(".txt"), 4, O_CLOEXEC);
        SAY(write(file, buffer, 10));
        close(file);
    }
    EACH(FILE *(void), "tmpfile", "tmpfile64") {
        FILE *stream = call();
        SAY(fwrite(buffer, 1, 10, stream));
        SAY(fclose(stream));
    }
}

static void streams(void) {
    EACH(FILE *(const char *, const char *), "fopen", "fopen64") {
        FILE *stream = call(name, "r");
        SAY_IF(stream != NULL);
        fclose(stream);
        SAY_IF(call(MISSING, "r") != NULL);
    }
    EACH(FILE *(const char *, const char *, FILE *), "freopen", "freopen64") {
        FILE *stream = call(name, "r", fopen("target", "r"));
        SAY_IF(stream != NULL);
        SAY(read(fileno(stream), buffer, 10));
        fclose(stream);
    }
    EACH(FILE *(int, const char *), "fdopen") {
        FILE *stream = call(open(name, O_RDONLY), "r");
        SAY_IF(stream != NULL);
        fclose(stream);
    }
    EACH(int(FILE *), "fclose") {
        SAY(call(fopen(name, "r")));
    }
    EACH(size_t(void *, size_t, size_t, FILE *), "fread", "fread_unlocked") {
        FILE *stream = fopen(name, "r");
        SAY(call(buffer, 10, 7, stream));
        SAY(call(buffer, 10, 2000, stream));
        fclose(stream);
    }
    EACH(size_t(void *, size_t, size_t, size_t, FILE *), "__fread_chk", "__fread_unlocked_chk") {
        FILE *stream = fopen(name, "r");
        SAY(call(buffer, sizeof buffer, 10, 7, stream));
        fclose(stream);
    }
    EACH(size_t(const void *, size_t, size_t, FILE *), "fwrite", "fwrite_unlocked") {
        FILE *stream = fopen(name, "w");
        SAY(call(buffer, 10, 7, stream));
        fclose(stream);
    }
    EACH(char *(char *, int, FILE *), "fgets", "fgets_unlocked") {
        FILE *stream = fopen(name, "r");
        SAY_IF(call(buffer, 50, stream) != NULL);
        SAY_IF(call(buffer, 500, stream) != NULL);
        fclose(stream);
    }
    EACH(char *(char *, size_t, int, FILE *), "__fgets_chk", "__fgets_unlocked_chk") {
        FILE *stream = fopen(name, "r");
        SAY_IF(call(buffer, sizeof buffer, 50, stream) != NULL);
        fclose(stream);
    }
    EACH(int(const char *, FILE *), "fputs", "fputs_unlocked") {
        FILE *stream = fopen(name, "w");
        SAY(call("seven..", stream));
        fclose(stream);
    }
    EACH(ssize_t(char **, size_t *, FILE *), "getline") {
        FILE *stream = fopen(name, "r");
        char *line = NULL;
        size_t room = 0;
        SAY(call(&line, &room, stream));
        fclose(stream);
    }
    EACH(ssize_t(char **, size_t *, int, FILE *), "getdelim", "__getdelim") {
        FILE *stream = fopen(name, "r");
        char *line = NULL;
        size_t room = 0;
        SAY(call(&line, &room, 'x', stream));
        fclose(stream);
    }
    EACH(int(FILE *), "fflush", "fflush_unlocked") {
        FILE *stream = fopen(name, "w");
        fwrite("seven..", 1, 7, stream);
        SAY(call(stream));
        fclose(stream);
    }
    EACH(int(FILE *, off_t, int), "fseek", "fseeko", "fseeko64") {
        FILE *stream = fopen(name, "r");
        SAY(call(stream, 100, SEEK_SET));
        SAY(call(stream, -1, SEEK_SET));
        fclose(stream);
    }
}

static void moved_streams(void) {
    fpos_t place;
    EACH(int(FILE *, fpos_t *), "fgetpos", "fgetpos64") {
        FILE *stream = fopen(name, "r");
        SAY(call(stream, &place));
        fclose(stream);
    }
    EACH(int(FILE *, const fpos_t *), "fsetpos", "fsetpos64") {
        FILE *stream = fopen(name, "r");
        SAY(call(stream, &place));
        fclose(stream);
    }
    EACH(void(FILE *), "rewind") {
        FILE *stream = fopen(name, "r");
        SAY((call(stream), 0));
        /* What is closed below it cannot be moved. */
        close(fileno(stream));
        SAY((call(stream), 0));
        fclose(stream);
    }
}

static int listed(int (*function)(FILE *, const char *, va_list), FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = function(stream, format, arguments);
    va_end(arguments);
    return written;
}

static int listed_checked(int (*function)(FILE *, int, const char *, va_list), FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = function(stream, 1, format, arguments);
    va_end(arguments);
    return written;
}

static void formatted(void) {
    EACH(int(FILE *, const char *, ...), "fprintf") {
        FILE *stream = fopen(name, "w");
        SAY(call(stream, "%s %d %.1f %m", "text", 7, 1.5));
        fclose(stream);
    }
    EACH(int(FILE *, int, const char *, ...), "__fprintf_chk") {
        FILE *stream = fopen(name, "w");
        SAY(call(stream, 1, "%s %d %.1f %m", "text", 7, 1.5));
        fclose(stream);
    }
    EACH(int(FILE *, const char *, va_list), "vfprintf") {
        FILE *stream = fopen(name, "w");
        SAY(listed(call, stream, "%s %d %.1f %m", "text", 7, 1.5));
        fclose(stream);
    }
    EACH(int(FILE *, int, const char *, va_list), "__vfprintf_chk") {
        FILE *stream = fopen(name, "w");
        SAY(listed_checked(call, stream, "%s %d %.1f %m", "text", 7, 1.5));
        fclose(stream);
    }
}

static int listed_into(int (*function)(int, const char *, va_list), int file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = function(file, format, arguments);
    va_end(arguments);
    return written;
}

static int listed_into_checked(int (*function)(int, int, const char *, va_list), int file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = function(file, 1, format, arguments);
    va_end(arguments);
    return written;
}

static void formatted_into_descriptors(void) {
    EACH(int(int, const char *, ...), "dprintf") {
        int file = open(name, O_RDWR), read_only = open(name, O_RDONLY);
        SAY(call(file, "%s %d %.1f %m", "text", 7, 1.5));
        SAY(read(file, buffer, 10));
        SAY(call(read_only, "%s %d %.1f %m", "text", 7, 1.5));
        close(file);
        close(read_only);
    }
    EACH(int(int, int, const char *, ...), "__dprintf_chk") {
        int file = open(name, O_RDWR);
        SAY(call(file, 1, "%s %d %.1f %m", "text", 7, 1.5));
        close(file);
    }
    EACH(int(int, const char *, va_list), "vdprintf") {
        int file = open(name, O_RDWR);
        SAY(listed_into(call, file, "%s %d %.1f %m", "text", 7, 1.5));
        close(file);
    }
    EACH(int(int, int, const char *, va_list), "__vdprintf_chk") {
        int file = open(name, O_RDWR);
        SAY(listed_into_checked(call, file, "%s %d %.1f %m", "text", 7, 1.5));
        close(file);
    }
}

/* As a compiler calls them, which chooses by how the program is built: other widths, and checks of what it knows. */
static void as_compiled(const char *mode) {
    char known[200], line[50], link[30];
    name = mode;
    int file = open(mode, O_RDWR), folder = open(".", O_RDONLY);
    SAY(read(file, known, strlen(mode)));
    SAY(pread(file, known, 100 + strlen(mode), 9950));
    SAY(pwrite(file, known, 20, 10));
    SAY(lseek(file, 10, SEEK_SET));
    SAY(write(file, known, 10));
    SAY(ftruncate(file, 9000));
    SAY(posix_fallocate(file, 0, 100));
    struct stat is;
    SAY(fstat(file, &is));
    SAY(stat(mode, &is));
    SAY(fstatat(folder, mode, &is, 0));
    close(file);
    file = openat(folder, mode, strlen(mode) > 0 ? O_RDWR : O_WRONLY);
    SAY(fcntl(file, F_DUPFD, 730));
    close(730);
    void *mapped = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
    munmap(mapped, PAGE);
    close(file);
    close(folder);
    SAY(readlink("readlink", link, strlen(mode)));
    FILE *stream = fopen("stream", "r+");
    SAY(fread(known, 1, 20 + strlen(mode), stream));
    SAY_IF(fgets(line, 10 + strlen(mode), stream) != NULL);
    SAY(fseeko(stream, 0, SEEK_SET));
    SAY(fprintf(stream, "%s\n", mode));
    fclose(stream);
}

int main(int count, char **arguments) {
    opens();
    descriptors();
    reads();
    writes();
    between();
    positions();
    asked();
    names_of_files();
    folders();
    maps();
    moved_maps();
    temporary();
    streams();
    moved_streams();
    formatted();
    formatted_into_descriptors();
    if (count > 1)
        as_compiled(arguments[1]);
    fwrite(said, 1, said_len, stdout);
    return 0;
}
