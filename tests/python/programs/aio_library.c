/* What libaio does, for machines without it. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int number(long returned) { return returned < 0 ? -errno : (int)returned; }

int io_setup(int most, void **context) { return number(syscall(SYS_io_setup, most, context)); }
int io_destroy(void *context) { return number(syscall(SYS_io_destroy, context)); }
int io_submit(void *context, long count, void *requests) {
    return number(syscall(SYS_io_submit, context, count, requests));
}
int io_getevents(void *context, long least, long most, void *events, void *until) {
    return number(syscall(SYS_io_getevents, context, least, most, events, until));
}
