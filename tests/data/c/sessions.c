/* Sessions by the C interface: by a schedule if the output is called so. Prints what the test
 * compares. */

#include <inttypes.h>
#include <kymograph.h>
#include <stdio.h>
#include <string.h>

static void ready(void *user, const char *path, const kymo_summary *summary) {
    const char *name = strrchr(path, '/');
    printf("%s %s %" PRIu64 "\n", (const char *)user, name ? name + 1 : path, summary->lost);
    /* The callback may come back to the library. */
    kymo_step();
}

static int schedule(const char *options) {
    kymo_schedule cycle = {sizeof cycle, 0, 1, 1, 2, 2, 0};
    if (!kymo_session_start(options, &cycle, ready, "ready")) return 1;
    for (int i = 0; i < 12; i++) {
        KYMO_SCOPE("app", "work");
        kymo_step();
    }
    printf("%" PRIu64 " traces\n", kymo_session_finish());
    return kymo_session_finish() != 0;
}

static int window(const char *options) {
    if (kymo_pause() || kymo_open() || kymo_metadata("a", "b")) return 1;
    if (!kymo_prepare(options) || kymo_prepare(options)) return 2;
    { KYMO_SCOPE("app", "before"); }
    if (!kymo_open() || !kymo_metadata("colour", "blue")) return 3;
    { KYMO_SCOPE("app", "inside"); }
    if (!kymo_pause()) return 4;
    { KYMO_SCOPE("app", "paused"); }
    if (!kymo_resume()) return 5;
    { KYMO_SCOPE("app", "resumed"); }
    return kymo_stop(NULL) ? 0 : 6;
}

int main(int count, char **words) {
    char options[4096];
    if (count != 2) return 100;
    snprintf(options, sizeof options, "OUTPUT=%s", words[1]);
    return strstr(words[1], "schedule") ? schedule(options) : window(options);
}
