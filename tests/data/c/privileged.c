/* Records as the environment says, or attaches a tool as NVTX and ITT do, and says as which
   user it runs. */
#include "kymograph.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int (*export_table)(unsigned, const void **);
int InitializeInjectionNvtx2(export_table (*get)(unsigned));
void __itt_api_init(void *global, int group);

static export_table none(unsigned id) {
    (void)id;
    return 0;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "start";
    printf("%u %u\n", (unsigned)getuid(), (unsigned)geteuid());
    if (strcmp(what, "start") == 0) {
        char why[300];
        if (!kymo_start(NULL)) {
            kymo_last_error(why, sizeof why);
            puts(why);
            return 0;
        }
        kymo_push_str(0, "x", 0, 0);
        kymo_pop();
        kymo_stop(0);
    } else if (strcmp(what, "nvtx") == 0) {
        printf("%d\n", InitializeInjectionNvtx2(none));
    } else {
        __itt_api_init(0, 0);
    }
    return 0;
}
