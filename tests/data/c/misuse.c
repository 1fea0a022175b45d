/* Calls everything as it should not be called: argv[1] is the output. Whatever is recorded
 * of it, nothing crashes, and the last slice is right. */
#include "kymograph.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void recurse(int depth) {
    kymo_push_str(0, "deep", NULL, 0);
    if (depth > 1) {
        recurse(depth - 1);
    }
    kymo_pop();
}

static void on_signal(int unused) {
    (void)unused;
    kymo_push_str(0, "handler", NULL, 0);
    kymo_pop();
}

static int complains(const char *options, const char *about) {
    char why[300] = "";
    char brief[4] = "";
    if (kymo_start(options) || kymo_last_error(why, sizeof why) != strlen(why)) {
        return 1;
    }
    if (kymo_last_error(brief, sizeof brief) != strlen(why) || strncmp(brief, why, 3) != 0) {
        return 1;
    }
    puts(why);
    return strstr(why, about) == NULL;
}

int main(int argc, char **argv) {
    char options[500];
    if (argc != 2) {
        return 2;
    }
    if (complains("OUTPT=x", "OUTPUT") || complains("BUFFER=lots", "BUFFER") ||
        complains("nonsense", "KEY=VALUE") || complains("OUTPUT=\xff", "utf-8") ||
        complains("OUTPUT=/nonexistent/x.pftrace", "/nonexistent/x.pftrace")) {
        return 1;
    }
    kymo_last_error(NULL, 0);
    snprintf(options, sizeof options, "OUTPUT=%s", argv[1]);
    if (!kymo_start(options)) {
        return 1;
    }
    kymo_pop(); /* nothing is open */
    kymo_push(0, NULL, 3);
    kymo_push(4000000000u, NULL, 0);
    kymo_push_str(4000000000u, NULL, NULL, 0);
    kymo_push_str(0, "\xff\xfe", NULL, 0);
    for (int i = 0; i < 4; i++) {
        kymo_pop();
    }
    if (kymo_register(0, NULL) != 0 || kymo_intern(NULL) != 0 || kymo_category_register(NULL) != 0) {
        return 1;
    }
    kymo_register(0, "");
    kymo_instant_str(0, "", NULL, NULL, 0);

    kymo_arg args[40];
    char names[40][16];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        args[i] = kymo_i64(names[i], i);
    }
    kymo_instant_str(0, "many", NULL, args, 40);
    kymo_instant_str(0, "huge count", NULL, args, (size_t)-1);
    args[0] = kymo_str(NULL, NULL);
    args[1] = kymo_i64("odd", 1);
    args[1].type = 77;
    args[2] = kymo_i64(NULL, 5);
    args[2].name_id = 4000000000u;
    args[3] = kymo_i64("id", 0);
    args[3].type = KYMO_STRING_ID;
    args[3].value.string_id = 4000000000u;
    args[4] = kymo_flow(0);
    kymo_instant_str(0, "strange", NULL, args, 5);
    kymo_pop_args(args, 5);

    char *long_name = malloc(3000001);
    memset(long_name, 'x', 3000000);
    long_name[3000000] = 0;
    kymo_instant_str(0, long_name, NULL, NULL, 0);
    kymo_thread_name(long_name);
    kymo_thread_name(NULL);
    free(long_name);

    kymo_range_end(0, NULL, 0);
    kymo_range_end(123456789, NULL, 0); /* never begun: counted */
    kymo_counter_i64(0, 1);
    kymo_counter_i64(4000000000u, 1);
    kymo_category_set_enabled(4000000000u, true);
    kymo_instant(0, kymo_track_create(NULL, NULL, 0), NULL, 0);

    recurse(20000);

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 100; i++) {
        kymo_push_str(0, "interrupted", NULL, 0);
        raise(SIGUSR1);
        kymo_pop();
    }

    /* There is no Python here, and no such option. */
    if (kymo_observe_python("") || kymo_observe_python("PYTHON=sometimes")) return 2;

    kymo_push_str(0, "last", NULL, 0);
    kymo_pop();
    for (int i = 0; i < 1000; i++) {
        kymo_pop();
    }
    struct {
        size_t size;
        uint64_t events, canary;
    } small = {sizeof small - sizeof small.canary, 0, 0x5a5a};
    if (!kymo_stop((kymo_summary *)(void *)&small) || small.events == 0 || small.canary != 0x5a5a) {
        return 1;
    }
    return 0;
}
