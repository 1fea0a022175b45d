// The header from C++: argv[1] is the output.
#include "kymograph.h"

#include <cstdio>
#include <stdexcept>
#include <string>

static void throws() {
    KYMO_SCOPE("app", "throws");
    throw std::runtime_error("ends the scope");
}

int main(int argc, char **argv) {
    if (argc != 2 || !kymo_start((std::string("OUTPUT=") + argv[1]).c_str())) {
        return 1;
    }
    const kymo_name handle = kymo_register(0, "handle");
    for (int n = 0; n < 3; n++) {
        KYMO_SCOPE_ARGS("app", "step", kymo_i64("n", n), kymo_str("what", "C++"));
        kymo::scope inside(handle, kymo_bool("yes", true));
        try {
            throws();
        } catch (const std::exception &) {
            KYMO_INSTANT("app", "caught");
        }
    }
    return kymo_stop(nullptr) ? 0 : 1;
}
