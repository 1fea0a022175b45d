/* Records one of everything through the C ABI: argv[1] is the output. */
#include "kymograph.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            char why[200];                                             \
            kymo_last_error(why, sizeof why);                          \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, why); \
            return 1;                                                  \
        }                                                              \
    } while (0)

static uint64_t job;
static kymo_range crossing;

static void *worker(void *unused) {
    (void)unused;
    kymo_thread_name("worker");
    {
        KYMO_SCOPE_ARGS("jobs", "run", kymo_flow_end(job));
    }
    kymo_range_end(crossing, KYMO_ARGS(kymo_i64("status", -3)));
    return NULL;
}

static void inner(void) {
    KYMO_SCOPE("app", "inner");
    KYMO_INSTANT_ARGS("app", "mark", kymo_str("where", "inner"));
}

int main(int argc, char **argv) {
    char options[500];
    if (argc != 2) {
        return 2;
    }
    CHECK(kymo_version_number() == KYMO_VERSION_NUMBER);
    CHECK(!kymo_is_recording());

    /* Handles are there before a recording is. */
    const kymo_category io = kymo_category_register("io");
    const kymo_name read = kymo_register(io, "read");
    const kymo_string bytes = kymo_intern("bytes");
    CHECK(io != 0 && read != 0 && bytes != 0 && kymo_register(io, "read") == read);
    kymo_push(read, NULL, 0); /* no recording yet: this pair leaves nothing */

    snprintf(options, sizeof options, "OUTPUT=%s\nCATEGORIES=*,-noise\n", argv[1]);
    CHECK(kymo_start(options));
    CHECK(kymo_is_recording());
    CHECK(!kymo_start(options)); /* one at a time */
    kymo_pop();

    kymo_process_name("everything");
    kymo_thread_name("the main one");

    kymo_arg args[8];
    args[0] = kymo_u64(NULL, 18446744073709551615u);
    args[0].name_id = bytes;
    args[1] = kymo_bool("cached", true);
    args[2] = kymo_f64("ratio", 0.25);
    args[3] = kymo_str("path", "a/b");
    args[4] = kymo_ptr("at", (void *)0xabc0);
    args[5] = kymo_i64("delta", -7);
    args[6].name = "kind";
    args[6].type = KYMO_STRING_ID;
    args[6].value.string_id = bytes;
    args[7] = kymo_flow((job = kymo_flow_new()));
    kymo_push(read, args, 8);
    inner();
    inner();
    kymo_pop_args(KYMO_ARGS(kymo_i64("got", 12), kymo_str("how", "well")));

    /* An unrecorded push in the middle does not take its neighbour's pop. */
    const kymo_category noise = kymo_category_register("noise");
    CHECK(!kymo_category_is_enabled(noise) && kymo_category_is_enabled(io));
    kymo_push_str(0, "outer", NULL, 0);
    kymo_push_str(noise, "unheard", NULL, 0);
    kymo_instant_str(0, "in outer", NULL, NULL, 0);
    kymo_pop();
    kymo_instant_str(0, "in outer", NULL, NULL, 0);
    kymo_category_set_enabled(noise, true);
    kymo_push_str(noise, "heard", NULL, 0);
    kymo_category_set_enabled(noise, false);
    kymo_pop(); /* was recorded: ends, although off by now */
    kymo_pop();

    const kymo_counter queued = kymo_counter_register(0, "queued", KYMO_UNIT_BYTES);
    kymo_counter_i64(queued, 4096);
    kymo_counter_i64(queued, -1);
    kymo_counter_f64(kymo_counter_register(0, "load", KYMO_UNIT_NONE), 0.5);
    KYMO_COUNTER("app", "steps", KYMO_UNIT_COUNT, 1);

    const kymo_track *row = kymo_track_create("requests", NULL, 1);
    const kymo_track *sub = kymo_track_create("retries", row, KYMO_NO_RANK);
    crossing = kymo_range_begin(read, row, KYMO_ARGS(kymo_u64("id", 1)));
    const kymo_range other = kymo_range_begin_str(io, "write", row, NULL, 0);
    const kymo_range lone = kymo_range_begin_str(io, "lone", NULL, NULL, 0);
    CHECK(crossing != 0 && other != 0 && crossing != other);
    CHECK(kymo_range_begin_str(noise, "unheard", row, NULL, 0) == 0);
    kymo_instant(read, sub, NULL, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, worker, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    kymo_range_end(other, NULL, 0);
    kymo_range_end(lone, NULL, 0);

    CHECK(kymo_flush(5000));
    kymo_summary summary;
    memset(&summary, 0xff, sizeof summary);
    summary.size = sizeof summary;
    CHECK(kymo_stop(&summary));
    CHECK(summary.size == sizeof summary && summary.lost == 0 && summary.write_errors == 0);
    CHECK(summary.threads == 2 && summary.unmatched_ends == 0 && summary.truncated == 0);
    printf("%llu\n", (unsigned long long)summary.events);

    CHECK(!kymo_stop(NULL) && !kymo_is_recording() && !kymo_flush(1));
    KYMO_SCOPE("app", "after the end");
    return 0;
}
