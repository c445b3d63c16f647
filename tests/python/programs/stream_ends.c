// Reads streams to their ends, and writes to one until a limit: prints what each call gave back, and errno.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

// A reason that is left from before.
#define SAY(call)                                  \
    do {                                           \
        errno = EACCES;                            \
        long returned = (long)(call);              \
        printf("%ld %d\n", returned, errno);       \
    } while (0)

int main(void) {
    char text[100], *line = NULL;
    size_t len = 0;
    FILE *file = fopen("data/lines", "r");
    SAY(fgets(text, sizeof text, file) != NULL);
    SAY(getline(&line, &len, file));
    SAY(fgets(text, sizeof text, file) != NULL);
    SAY(getline(&line, &len, file));
    SAY(fread(text, 1, sizeof text, file));
    rewind(file);
    SAY(fread(text, 1, sizeof text, file));
    SAY(fwrite("12345678", 1, 8, file));
    fclose(file);
    file = fopen("data", "r");
    SAY(fread(text, 1, sizeof text, file));
    SAY(fgets(text, sizeof text, file) != NULL);
    // It does not try again.
    SAY(getline(&line, &len, file));
    fclose(file);
    file = fopen("data/reason", "w");
    SAY(fprintf(file, "%m"));
    fclose(file);
    struct rlimit most = {10, 10};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &most);
    file = fopen("data/full", "w");
    setvbuf(file, NULL, _IONBF, 0);
    SAY(fwrite("12345678", 1, 8, file));
    SAY(fwrite("12345678", 1, 8, file));
    SAY(fputs("12345678", file));
    SAY(fprintf(file, "%d", 12345678));
    SAY(fclose(file));
    return 0;
}
