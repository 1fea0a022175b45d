/* Kymograph: records what a program does into a Perfetto trace.
 *
 *     kymo_start("OUTPUT=trace.pftrace");
 *     {
 *         KYMO_SCOPE("app", "step");                    // until the end of the block
 *         KYMO_SCOPE_ARGS("io", "read", kymo_u64("bytes", 4096));
 *     }
 *     kymo_stop(NULL);
 *
 * C11 and C++11. Link with -lkymograph.
 *
 * What holds for every function, unless it says otherwise:
 *
 * - Threads: any thread may call it at any time, also at the same time as others.
 *   Signal handlers are said where they matter. What records an event may be called in
 *   them, on threads that have recorded before, with names and strings that have handles
 *   already (a new text needs memory): it takes no lock, and an event that interrupts the
 *   recording of another is counted as lost.
 * - Nothing throws, exits, prints, or waits, but kymo_start, kymo_stop, kymo_flush and
 *   kymo_dump. (A name that is new, of an argument or a handle, waits for another thread that
 *   is just adding one: microseconds, a tenth of a second at most.)
 * - Strings are copied during the call. They end with NUL, need not be UTF-8 (what is not
 *   becomes U+FFFD in the trace) and may have any length; what one event can carry is
 *   limited, and what is cut off is counted. A NULL name reads "(unnamed)".
 * - Handles (kymo_category, kymo_name, kymo_string, kymo_counter) are numbers, valid in the
 *   whole process, and for its whole life, also before the first and between recordings.
 *   0 and numbers that are not handles are harmless: their events are "(unnamed)".
 * - Recording an event takes 1.5 KiB of stack. On the stack of a signal handler there must be
 *   room for the processor's registers as well: sysconf(_SC_SIGSTKSZ) is enough.
 * - While no recording runs, or the category is off, recording an event costs some
 *   nanoseconds and does nothing.
 */
#ifndef KYMOGRAPH_H
#define KYMOGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of this header: compare with kymo_version_number(). */
#define KYMO_VERSION_MAJOR 0
#define KYMO_VERSION_MINOR 1
#define KYMO_VERSION_PATCH 0
#define KYMO_VERSION_NUMBER \
    ((uint32_t)KYMO_VERSION_MAJOR << 16 | (uint32_t)KYMO_VERSION_MINOR << 8 | KYMO_VERSION_PATCH)

/* In C++, `kymo_summary s = {sizeof s};` sets the rest to 0, and says so to the compiler. (In C++11
 * what has initialisers is not made by a list; there, as in C, the rest is 0 without them.) */
#if defined(__cplusplus) && __cplusplus >= 201402L
#define KYMO_ZERO_ = 0
#else
#define KYMO_ZERO_
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Recording ------------------------------------------------------------------------ */

/* What a recording amounted to. Later versions add fields at the end: set `size` to
 * sizeof(kymo_summary), and only what you have room for is filled in. */
typedef struct kymo_summary {
    size_t size KYMO_ZERO_;
    uint64_t events KYMO_ZERO_;         /* slices, ranges, instants, counter values in the trace */
    uint64_t lost KYMO_ZERO_;           /* events that are missing, for whatever reason */
    uint64_t reentrant KYMO_ZERO_;      /* of these: recorded while another was being recorded */
    uint64_t unwritten KYMO_ZERO_;      /* events that the output did not take */
    uint64_t truncated KYMO_ZERO_;      /* strings and arguments that were cut short or left out */
    uint64_t unmatched_ends KYMO_ZERO_; /* ends of slices that began before the recording */
    uint64_t misnested KYMO_ZERO_;      /* slices that ended before slices inside them */
    uint64_t clamped KYMO_ZERO_;        /* times that ran backwards and were moved up */
    uint64_t threads KYMO_ZERO_;        /* threads that recorded something */
    uint64_t bytes KYMO_ZERO_;          /* size of the trace before compression */
    uint64_t write_errors KYMO_ZERO_;   /* attempts to write that failed */
    uint64_t discarded KYMO_ZERO_;      /* events that a flight recorder kept, and had to let go */
} kymo_summary;

/* Starts recording. `options` are lines of KEY=VALUE, such as
 * "OUTPUT=run.pftrace.gz\nBUFFER=128M\nCATEGORIES=*,-debug"; NULL takes them from the
 * environment (KYMOGRAPH_OUTPUT and so on), "" are the defaults. `kymo --help` lists them.
 * A privileged program (setuid, setgid, file capabilities) gets the defaults and SAFE for NULL.
 *
 * False if there is an unknown key or a bad value, the output cannot be written, or the
 * process is being recorded already; kymo_last_error says which, and nothing has started.
 * The recording ends with kymo_stop, or when the process exits.
 *
 * Under `kymo record` the recording is not the program's: kymo_start checks its options and
 * otherwise leaves things as they are, kymo_stop only flushes, and both say true.
 *
 * Threads: any. Not in signal handlers. With NULL, no other thread may change the
 * environment meanwhile. */
bool kymo_start(const char *options);

/* Ends the recording that kymo_start started, and fills in `summary` unless it is NULL.
 * Everything recorded before the call is in the trace then. Waits for the output, seconds
 * at most. False if there is no such recording or the output failed: see kymo_last_error.
 *
 * Threads: any; of several calls one ends it. Not in signal handlers. */
bool kymo_stop(kymo_summary *summary);

/* As kymo_start, but what is recorded is discarded until kymo_open, by its timestamps: so the
 * beginning of what is to be recorded does not suffer from what sources (CUDA, say) do when
 * they are switched on. What began before kymo_open and ends later is in the trace, with its
 * own times and an argument `straddles`. */
bool kymo_prepare(const char *options);
bool kymo_open(void);

/* Records nothing until kymo_resume; slices that have begun may end meanwhile. Costs
 * microseconds. False if there is no recording that kymo_start or kymo_prepare started. */
bool kymo_pause(void);
bool kymo_resume(void);

/* Has the trace say something of itself: it gets the key kymograph.<pid>.<key>. */
bool kymo_metadata(const char *key, const char *value);

/* Writes everything recorded so far, by whoever started it, to the output, and waits until
 * that is done, at most so many milliseconds. Returns whether it is done.
 *
 * Threads: any. Not in signal handlers. */
bool kymo_flush(uint32_t milliseconds);

/* Has a flight recorder (options FLIGHT=30s …) write what it holds, while it goes on: into
 * `path`, this process's part; or with NULL into the next of the numbered files beside the
 * output (trace.1.pftrace …), to which all processes of a recording add their parts.
 * Waits until this process's part is written, at most so many milliseconds. Returns
 * whether it is; if not, see kymo_last_error.
 *
 * Threads: any. Not in signal handlers. */
bool kymo_dump(const char *path, uint32_t milliseconds);

/* Observes the Python interpreter of this process, as `kymo record` does: what its threads are
 * called, operators of PyTorch, whether it is imported by now or later, and with
 * PYTHON=functions calls of functions, on the calling thread and those that start afterwards.
 * `options` as for kymo_start, of which PYTORCH, PYTHON and CATEGORIES are read: give the same to
 * both, and call this first. Without PYTHON=functions calls are not recorded any more. Observing
 * costs some nanoseconds for each operator while nothing is recorded. For extension modules and
 * programs that embed Python; does nothing under `kymo record`, which has done it.
 *
 * False if an option is wrong, or the process has no Python (3.8 or newer) whose main interpreter
 * runs; see kymo_last_error.
 *
 * Threads: one that holds the interpreter's lock (the GIL). Not in signal handlers. */
bool kymo_observe_python(const char *options);

/* Whether this process is being recorded. Threads: any, and in signal handlers. */
bool kymo_is_recording(void);

/* Copies the reason of the last failure in this process, whichever thread it was on, to
 * `buffer`, cut off to fit and terminated; returns its whole length without the NUL, 0 if
 * nothing ever failed. `buffer` may be NULL if `size` is 0.
 *
 * Threads: any. Not in signal handlers. */
size_t kymo_last_error(char *buffer, size_t size);

/* The version of the library, as text, and as KYMO_VERSION_NUMBER counts. Threads: any, and
 * in signal handlers. */
const char *kymo_version(void);
uint32_t kymo_version_number(void);

/* ---- Being asked for traces ----------------------------------------------------------- */

/* Lets this process be asked for traces from now on (`kymo ps`, `kymo trigger`), as programs
 * that were started with `kymo record --wait` can be. `options` as for kymo_start; they hold
 * for traces that do not ask for others. Starts Kymograph's background thread, which waits.
 * True also if that was done before; false with kymo_last_error if it cannot be.
 *
 * Threads: any. Not in signal handlers. With NULL, no other thread may change the
 * environment meanwhile. */
bool kymo_arm(const char *options);

/* Says that an iteration of the program ends and the next begins. Traces by iterations begin
 * and end here, and in every trace iterations are ranges: ProfilerStep#1 is what comes after
 * the first call. Costs some nanoseconds while nobody asks.
 *
 * Threads: any, usually one. Not in signal handlers. */
void kymo_step(void);

/* Which iterations to record: cycles of waiting, warming up (sources are on, nothing is kept)
 * and recording, each into a trace of its own. Set `size` to sizeof(kymo_schedule). */
typedef struct kymo_schedule {
    size_t size KYMO_ZERO_;
    uint64_t skip_first KYMO_ZERO_;      /* iterations before the first cycle */
    uint64_t wait KYMO_ZERO_;            /* of a cycle, in which nothing happens */
    uint64_t warmup KYMO_ZERO_;          /* of a cycle, in which sources are on */
    uint64_t active KYMO_ZERO_;          /* of a cycle, that are recorded; at least 1 */
    uint64_t repeat KYMO_ZERO_;          /* how many cycles; 0 for no end */
    uint64_t skip_first_wait KYMO_ZERO_; /* 1: the first cycle has no wait */
} kymo_schedule;

/* Called with each trace, by kymo_step or kymo_session_finish. */
typedef void (*kymo_trace_ready)(void *user, const char *path, const kymo_summary *summary);

/* Records the iterations that `schedule` chooses (NULL: each), which begin now and with every
 * kymo_step. The first trace has the name that `options` say, further ones get their number
 * before the extension. A session that runs already ends first. Under `kymo record` all is
 * recorded anyway: true, and nothing happens. False as for kymo_start.
 *
 * Threads: any. Not in signal handlers. */
bool kymo_session_start(const char *options, const kymo_schedule *schedule,
                        kymo_trace_ready on_trace_ready, void *user);

/* Ends it, and writes what is being recorded; returns how many traces there are. */
uint64_t kymo_session_finish(void);

/* ---- Names ---------------------------------------------------------------------------- */

/* A category: what can be switched on and off. 0 is "app". */
typedef uint32_t kymo_category;
/* The name of events, with their category. */
typedef uint32_t kymo_name;
/* Any other string. */
typedef uint32_t kymo_string;

/* Handles of categories, names and strings. The same text always has the same handle, so
 * calling this again is right, only slower than keeping it. 0 if the text is NULL or there
 * is no room: 65,536 texts, 16 MiB.
 *
 * Threads: any. In signal handlers for texts that have a handle already. */
kymo_category kymo_category_register(const char *name);
kymo_name kymo_register(kymo_category category, const char *name);
kymo_string kymo_intern(const char *text);

/* Whether events of the category are recorded at this moment.
 * Threads: any, and in signal handlers. */
bool kymo_category_is_enabled(kymo_category category);

/* Switches a category on or off until the recording ends; the next one starts with what its
 * CATEGORIES say. Does nothing while none runs.
 * Threads: any; others see it soon, not at once. Not in signal handlers. */
void kymo_category_set_enabled(kymo_category category, bool on);

/* ---- Arguments ------------------------------------------------------------------------ */

typedef enum kymo_type {
    KYMO_BOOL = 1,
    KYMO_I64 = 2,
    KYMO_U64 = 3,
    KYMO_F64 = 4,
    KYMO_STRING = 5,
    KYMO_POINTER = 6,   /* shown in hexadecimal */
    KYMO_FLOW = 7,      /* an arrow from or through this event */
    KYMO_FLOW_END = 8,  /* an arrow that ends here */
    KYMO_STRING_ID = 9
} kymo_type;

/* A typed argument of an event. An event takes 32 of them (flows included, the track too);
 * what is beyond, or of an unknown type, is left out. */
typedef struct kymo_arg {
    const char *name;    /* NULL: the name is name_id */
    kymo_string name_id; /* read if name is NULL */
    uint32_t type;       /* a kymo_type */
    union {
        bool boolean;
        int64_t i64;
        uint64_t u64;
        double f64;
        const char *string; /* NULL reads "(null)" */
        const void *pointer;
        uint64_t flow; /* from kymo_flow_new; 0: left out */
        kymo_string string_id;
    } value;
} kymo_arg;

/* A flow: an arrow through the events that have it as an argument, in the order of their
 * times. Different from all others in the trace. Threads: any, and in signal handlers. */
uint64_t kymo_flow_new(void);

/* ---- Events --------------------------------------------------------------------------- */

/* Each function that takes a kymo_name has a twin, …_str, for names that are made at run
 * time. It looks the name up with every call. `args` may be NULL if `count` is 0.
 *
 * Threads: any, and in signal handlers (see above). */

/* A slice on the calling thread begins. */
void kymo_push(kymo_name name, const kymo_arg *args, size_t count);
void kymo_push_str(kymo_category category, const char *name, const kymo_arg *args, size_t count);

/* The slice that the thread's last unfinished push began ends, with further arguments. If
 * that push was not recorded, nor is this. A pop without a push does nothing.
 * On the thread that pushed. A signal handler pops what it pushes. */
void kymo_pop(void);
void kymo_pop_args(const kymo_arg *args, size_t count);

/* A row of its own for ranges and instants. */
typedef struct kymo_track kymo_track;

/* A track called `name`, under another one or (NULL) under the process, among its siblings
 * in the order of their ranks. It is never freed: make one for each kind of thing, not for
 * each thing. NULL only without memory, which is harmless too.
 *
 * Threads: any. Not in signal handlers. */
#define KYMO_NO_RANK INT32_MIN
const kymo_track *kymo_track_create(const char *name, const kymo_track *parent, int32_t rank);

/* Something happens, on the calling thread or (unless NULL) on a track. */
void kymo_instant(kymo_name name, const kymo_track *track, const kymo_arg *args, size_t count);
void kymo_instant_str(kymo_category category, const char *name, const kymo_track *track,
                      const kymo_arg *args, size_t count);

/* A slice that may cross others and end on another thread. 0: not recorded. */
typedef uint64_t kymo_range;

/* A range begins, on a track or (NULL) on one that is named after its category. */
kymo_range kymo_range_begin(kymo_name name, const kymo_track *track, const kymo_arg *args,
                            size_t count);
kymo_range kymo_range_begin_str(kymo_category category, const char *name, const kymo_track *track,
                                const kymo_arg *args, size_t count);

/* A range ends, on any thread, with further arguments. Once for each range; 0 does nothing. */
void kymo_range_end(kymo_range range, const kymo_arg *args, size_t count);

typedef enum kymo_unit {
    KYMO_UNIT_NONE = 0,
    KYMO_UNIT_NANOSECONDS = 1,
    KYMO_UNIT_COUNT = 2,
    KYMO_UNIT_BYTES = 3
} kymo_unit;

/* A counter, with its unit. */
typedef uint64_t kymo_counter;

/* A counter called `name`: a row of the process. As kymo_register. */
kymo_counter kymo_counter_register(kymo_category category, const char *name, kymo_unit unit);

/* The counter has this value from now on. */
void kymo_counter_i64(kymo_counter counter, int64_t value);
void kymo_counter_f64(kymo_counter counter, double value);

/* Names the calling thread, or the process, in the running recording and, after kymo_arm, in
 * those that others ask for later. Threads: any. Not in signal handlers. */
void kymo_thread_name(const char *name);
void kymo_process_name(const char *name);

/* ---- Shorthand for arguments ---------------------------------------------------------- */

static inline kymo_arg kymo_arg_of_(const char *name, kymo_type type) {
    kymo_arg arg;
    arg.name = name;
    arg.name_id = 0;
    arg.type = (uint32_t)type;
    arg.value.u64 = 0;
    return arg;
}
static inline kymo_arg kymo_bool(const char *name, bool value) {
    kymo_arg arg = kymo_arg_of_(name, KYMO_BOOL);
    arg.value.boolean = value;
    return arg;
}
static inline kymo_arg kymo_i64(const char *name, int64_t value) {
    kymo_arg arg = kymo_arg_of_(name, KYMO_I64);
    arg.value.i64 = value;
    return arg;
}
static inline kymo_arg kymo_u64(const char *name, uint64_t value) {
    kymo_arg arg = kymo_arg_of_(name, KYMO_U64);
    arg.value.u64 = value;
    return arg;
}
static inline kymo_arg kymo_f64(const char *name, double value) {
    kymo_arg arg = kymo_arg_of_(name, KYMO_F64);
    arg.value.f64 = value;
    return arg;
}
static inline kymo_arg kymo_str(const char *name, const char *value) {
    kymo_arg arg = kymo_arg_of_(name, KYMO_STRING);
    arg.value.string = value;
    return arg;
}
static inline kymo_arg kymo_ptr(const char *name, const void *value) {
    kymo_arg arg = kymo_arg_of_(name, KYMO_POINTER);
    arg.value.pointer = value;
    return arg;
}
static inline kymo_arg kymo_flow(uint64_t flow) {
    kymo_arg arg = kymo_arg_of_(NULL, KYMO_FLOW);
    arg.value.flow = flow;
    return arg;
}
static inline kymo_arg kymo_flow_end(uint64_t flow) {
    kymo_arg arg = kymo_arg_of_(NULL, KYMO_FLOW_END);
    arg.value.flow = flow;
    return arg;
}

#ifdef __cplusplus
} /* extern "C" */
#else
/* KYMO_ARGS(kymo_i64("n", 3), kymo_str("path", path)): for (args, count), in C. */
#define KYMO_ARGS(...) \
    (const kymo_arg[]){__VA_ARGS__}, sizeof((const kymo_arg[]){__VA_ARGS__}) / sizeof(kymo_arg)
#endif

/* ---- Macros --------------------------------------------------------------------------- */

/* For names that are literals: each place looks its name up once. With KYMO_OFF defined
 * before this header is included they compile to nothing, arguments and all.
 *
 *     KYMO_SCOPE(category, name)             a slice until the end of the block
 *     KYMO_SCOPE_ARGS(category, name, …)     the same with arguments
 *     KYMO_INSTANT(category, name)           something happens, on this thread
 *     KYMO_INSTANT_ARGS(category, name, …)
 *     KYMO_COUNTER(category, name, unit, value)   an integer
 *
 * For GCC and Clang. Threads: any. */
#if defined(KYMO_OFF)

#define KYMO_SCOPE(category, name) ((void)0)
#define KYMO_SCOPE_ARGS(category, name, ...) ((void)0)
#define KYMO_INSTANT(category, name) ((void)0)
#define KYMO_INSTANT_ARGS(category, name, ...) ((void)0)
#define KYMO_COUNTER(category, name, unit, value) ((void)0)

#elif defined(__GNUC__)

#define KYMO_JOIN2_(a, b) a##b
#define KYMO_JOIN_(a, b) KYMO_JOIN2_(a, b)

/* The handle of a place: 0 while there is none. A race is harmless: both find the same. */
static inline kymo_name kymo_place_(kymo_name *place, const char *category, const char *name) {
    kymo_name known = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (known == 0) {
        known = kymo_register(kymo_category_register(category), name);
        __atomic_store_n(place, known, __ATOMIC_RELAXED);
    }
    return known;
}
static inline void kymo_push_at_(kymo_name *place, const char *category, const char *name,
                                 const kymo_arg *args, size_t count) {
    const kymo_name known = kymo_place_(place, category, name);
    if (known != 0) {
        kymo_push(known, args, count);
    } else {
        kymo_push_str(kymo_category_register(category), name, args, count);
    }
}
static inline void kymo_instant_at_(kymo_name *place, const char *category, const char *name,
                                    const kymo_arg *args, size_t count) {
    const kymo_name known = kymo_place_(place, category, name);
    if (known != 0) {
        kymo_instant(known, NULL, args, count);
    } else {
        kymo_instant_str(kymo_category_register(category), name, NULL, args, count);
    }
}
static inline void kymo_count_at_(kymo_counter *place, const char *category, const char *name,
                                  kymo_unit unit, int64_t value) {
    kymo_counter known = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (known == 0) {
        known = kymo_counter_register(kymo_category_register(category), name, unit);
        __atomic_store_n(place, known, __ATOMIC_RELAXED);
    }
    kymo_counter_i64(known, value);
}

#define KYMO_INSTANT(category, name)                                                \
    do {                                                                            \
        static kymo_name kymo_place_of_this_;                                       \
        kymo_instant_at_(&kymo_place_of_this_, category, name, NULL, 0);            \
    } while (0)
#define KYMO_INSTANT_ARGS(category, name, ...)                                      \
    do {                                                                            \
        static kymo_name kymo_place_of_this_;                                       \
        const kymo_arg kymo_args_of_this_[] = {__VA_ARGS__};                        \
        kymo_instant_at_(&kymo_place_of_this_, category, name, kymo_args_of_this_,  \
                         sizeof kymo_args_of_this_ / sizeof(kymo_arg));             \
    } while (0)
#define KYMO_COUNTER(category, name, unit, value)                                   \
    do {                                                                            \
        static kymo_counter kymo_place_of_this_;                                    \
        kymo_count_at_(&kymo_place_of_this_, category, name, unit, value);          \
    } while (0)

#ifdef __cplusplus

namespace kymo {

/* A slice on this thread, from construction to destruction. */
class scope {
public:
    template <class... Args>
    explicit scope(kymo_name name, const Args &...args) {
        const kymo_arg all[] = {args..., kymo_arg()};
        kymo_push(name, all, sizeof...(Args));
    }
    /* For the macros. */
    template <class... Args>
    scope(kymo_name *place, const char *category, const char *name, const Args &...args) {
        const kymo_arg all[] = {args..., kymo_arg()};
        kymo_push_at_(place, category, name, all, sizeof...(Args));
    }
    ~scope() { kymo_pop(); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
};

} /* namespace kymo */

#define KYMO_SCOPE(category, name) KYMO_SCOPE_(__LINE__, category, name)
#define KYMO_SCOPE_ARGS(category, name, ...) KYMO_SCOPE_(__LINE__, category, name, __VA_ARGS__)
#define KYMO_SCOPE_(n, category, ...)             \
    static kymo_name KYMO_JOIN_(kymo_place_, n);  \
    const kymo::scope KYMO_JOIN_(kymo_scope_, n)( \
        &KYMO_JOIN_(kymo_place_, n), category, __VA_ARGS__)

#else

static inline void kymo_scope_ends_(const char *scope) {
    (void)scope;
    kymo_pop();
}
static inline char kymo_scope_begins_(kymo_name *place, const char *category, const char *name,
                                      const kymo_arg *args, size_t count) {
    kymo_push_at_(place, category, name, args, count);
    return 0;
}

#define KYMO_SCOPE(category, name) KYMO_SCOPE_(__LINE__, category, name, NULL, 0)
#define KYMO_SCOPE_ARGS(category, name, ...) \
    KYMO_SCOPE_(__LINE__, category, name, KYMO_ARGS(__VA_ARGS__))
#define KYMO_SCOPE_(n, category, name, ...)                                       \
    static kymo_name KYMO_JOIN_(kymo_place_, n);                                  \
    const char KYMO_JOIN_(kymo_scope_, n)                                         \
        __attribute__((cleanup(kymo_scope_ends_), unused)) = kymo_scope_begins_(  \
            &KYMO_JOIN_(kymo_place_, n), category, name, __VA_ARGS__)

#endif /* __cplusplus */
#endif /* __GNUC__ */

#endif /* KYMOGRAPH_H */
