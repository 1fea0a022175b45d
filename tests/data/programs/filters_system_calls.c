/* Installs a seccomp filter that allows what this program needs and nothing that starts
 * threads, opens files or waits. usage: kill|refuse thread|process [after: has recorded] */
#include "guest.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
    if (argc < 3)
        return 98;
    unsigned action = is(argv[1], "kill") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_exit),
        ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_clock_nanosleep),
        ALLOW(SYS_newfstatat), ALLOW(SYS_fstat), ALLOW(SYS_rt_sigreturn), ALLOW(SYS_futex),
        ALLOW(SYS_close), BPF_STMT(BPF_RET | BPF_K, action),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    unsigned flags = is(argv[2], "process") ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    struct timespec time = {0, 400000000};
    if (argc > 3)
        nvtxMarkA("before the filter");
    /* What the C library does at its first allocation, and at its first output. */
    puts("filters");
    fflush(stdout);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program))
        return die("seccomp");
    ranges("behind the filter", 100);
    nanosleep(&time, 0);
    puts("survived");
    fflush(stdout);
    return 0;
}
