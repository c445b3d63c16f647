// Reads many small files as a data set is read: processes read samples in random order, a page at a time.
//   many_files FOLDER FILES PROCESSES READ_BY_EACH
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[1 << 16];

static int opened(const char *folder, int sample, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/sample_%06d.bin", folder, sample);
    int descriptor = open(path, flags, 0644);
    if (descriptor < 0) abort();
    return descriptor;
}

static void read_one(const char *folder, int sample) {
    int descriptor = opened(folder, sample, O_RDONLY);
    off_t length = lseek(descriptor, 0, SEEK_END);
    lseek(descriptor, 0, SEEK_SET);
    while (read(descriptor, buffer, 4096) == 4096) {
    }
    if (pread(descriptor, buffer, 512, length / 2) != 512) abort();
    close(descriptor);
}

int main(int count, char **words) {
    if (count != 5) return 2;
    const char *folder = words[1];
    int files = atoi(words[2]), processes = atoi(words[3]), reads = atoi(words[4]);
    for (int sample = 0; sample < files; sample++) {
        int descriptor = opened(folder, sample, O_WRONLY | O_CREAT);
        if (write(descriptor, buffer, 20000 + sample % 7 * 4096) < 0) abort();
        close(descriptor);
    }
    for (int process = 0; process < processes; process++) {
        if (fork() != 0) continue;
        unsigned random = process + 1;
        for (int at = 0; at < reads; at++) {
            random = random * 1103515245u + 12345;
            read_one(folder, (random >> 8) % files);
        }
        exit(0);
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
