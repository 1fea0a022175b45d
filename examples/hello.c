/* The C ABI in a few lines. Build and run:
 *
 *     cc examples/hello.c -Iinclude -Ltarget/debug -lkymograph -Wl,-rpath,target/debug -o hello
 *     ./hello hello.pftrace        # then open it in https://ui.perfetto.dev
 */
#include <stdio.h>

#include "kymograph.h"

int main(int argc, char **argv) {
    char options[300];
    snprintf(options, sizeof options, "OUTPUT=%s", argc > 1 ? argv[1] : "hello.pftrace");
    if (!kymo_start(options)) {
        char why[200];
        kymo_last_error(why, sizeof why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    {
        KYMO_SCOPE("app", "greet");
        for (int n = 0; n < 3; n++) {
            KYMO_SCOPE_ARGS("app", "print", kymo_i64("n", n));
            printf("hello %d\n", n);
            KYMO_COUNTER("app", "greetings", KYMO_UNIT_COUNT, n + 1);
        }
    }
    return kymo_stop(NULL) ? 0 : 1;
}
