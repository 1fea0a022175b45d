/* Two processes record, each into memory of its own. The first cuts short and overwrites all
 * files of the recording that it can reach; the other goes on.
 */
#include "guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

/* The pipes between the two. */
enum { READY = 10, GO = 11 };

static void other(void)
{
    char go;
    for (int n = 0; n < 1000; n++)
        range("of another");
    if (write(READY, "r", 1) != 1 || read(GO, &go, 1) != 1)
        _exit(1);
    for (int n = 0; n < 1000; n++)
        range("of another");
}

static void damage(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    char bytes[256];
    memset(bytes, 0xff, sizeof bytes);
    for (off_t at = 0; at < 65536 && at < file.st_size; at += sizeof bytes)
        if (pwrite(fd, bytes, sizeof bytes, at) < 0)
            break;
    if (ftruncate(fd, 0) != 0)
        (void)!ftruncate(fd, 4096);
    close(fd);
}

/* Whether a descriptor that leads there is of the recording; the traces are not at issue. */
static int is_ours(const char *path, const char *place)
{
    return strncmp(path, "/memfd:kymograph", 16) == 0 || strncmp(path, place, strlen(place)) == 0;
}

static void damage_all(const char *folder, const char *place)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return;
    struct dirent *entry;
    while ((entry = readdir(entries))) {
        char path[4096], to[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t length = readlink(path, to, sizeof to - 1);
        to[length < 0 ? 0 : length] = 0;
        if (is_ours(length < 0 ? path : to, place))
            damage(path);
    }
    closedir(entries);
}

int main(int count, char **words)
{
    if (count > 1) {
        other();
        return 0;
    }
    char control[4096], folder[64], ready;
    const char *told = getenv("KYMOGRAPH_CONTROL");
    if (!told)
        return 98;
    snprintf(control, sizeof control, "%s", told);
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0)
        return die("pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(from[1], READY);
        dup2(to[0], GO);
        execl(words[0], words[0], "other", NULL);
        _exit(2);
    }
    for (int n = 0; n < 10; n++)
        range("of the one");
    if (read(from[0], &ready, 1) != 1)
        return 97;
    const char *place = dirname(control);
    damage_all(place, place);
    pid_t all[] = {getppid(), child, getpid()};
    for (int n = 0; n < 3; n++) {
        snprintf(folder, sizeof folder, "/proc/%d/fd", all[n]);
        damage_all(folder, place);
    }
    for (int n = 0; n < 10; n++)
        range("of the one");
    int status;
    if (write(to[1], "g", 1) != 1 || waitpid(child, &status, 0) != child)
        return 96;
    return status == 0 ? 7 : 95;
}
