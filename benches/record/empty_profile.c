/* What CPython calls around every call and that does nothing: what is left is the interpreter's own part, the floor under
   every profiler of calls. */

typedef int (*profile_function)(void *, void *, int, void *);
struct method {
    const char *name;
    void *(*function)(void *, void *const *, long);
    int flags;
    const char *doc;
};

/* CPython's, of the process that loads this. `None` is not counted from 3.12 on. */
extern void PyEval_SetProfile(profile_function, void *);
extern void *PyCFunction_NewEx(struct method *, void *, void *);
extern char _Py_NoneStruct[];

static int nothing(void *object, void *frame, int what, void *about) {
    (void)object, (void)frame, (void)what, (void)about;
    return 0;
}

static void *no_value(void *object, void *const *arguments, long count) {
    (void)object, (void)arguments, (void)count;
    return _Py_NoneStruct;
}

/* Up to 3.11. */
void start(void) { PyEval_SetProfile(nothing, 0); }

void stop(void) { PyEval_SetProfile(0, 0); }

/* From 3.12 on, for `sys.monitoring`. */
void *callback(void) {
    static struct method method = {"nothing", no_value, 0x80, 0};
    return PyCFunction_NewEx(&method, 0, 0);
}
