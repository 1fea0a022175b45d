/* Records as many steps as the next line of its input says, until that ends. */
#include "kymograph.h"

#include <stdio.h>

int main(void) {
    unsigned count = 0, n = 0;
    if (!kymo_start(NULL)) {
        return 1;
    }
    while (scanf("%u", &count) == 1) {
        for (unsigned i = 0; i < count; i++) {
            const kymo_arg arg = kymo_u64("n", n++);
            kymo_push_str(0, "step", &arg, 1);
            kymo_pop();
        }
        kymo_flush(60000);
        puts("done");
        fflush(stdout);
    }
    return kymo_stop(NULL) ? 0 : 1;
}
