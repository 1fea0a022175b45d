/* A program that opens such a library for itself alone, as Python opens its modules. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
    void *library = count > 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        puts(dlerror());
        return 2;
    }
    return ((int (*)(const char *))dlsym(library, "session"))(words[2]);
}
