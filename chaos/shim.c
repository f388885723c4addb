/* Faults below SQLite, loaded with LD_PRELOAD. Only files whose path begins with CHAOS_TARGET are touched. The control
 * page (CHAOS_CONTROL, one struct control, mapped by everyone) says which processes fail how often, and whether writes
 * and syncs are recorded in CHAOS_LOG, from which chaos/power.py builds what a power cut could leave on the disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { VICTIMS = 16, FILES = 65536 };
enum fault { WRITE_EIO, WRITE_ENOSPC, WRITE_SHORT, SYNC_EIO, READ_EIO, TRUNCATE_EIO, FAULTS };
enum record { WRITE = 1, SYNC_BEGIN, SYNC_END, TRUNCATE, UNLINK };
enum file { OTHER, DATABASE, WAL, BESIDE };

struct control {                      /* chaos/faults.py writes the same layout */
    volatile uint32_t faults;         /* bits of enum fault */
    volatile uint32_t per_mille;      /* how many calls fail */
    volatile uint32_t recording;
    volatile uint32_t seed;
    volatile int32_t victims[VICTIMS];
    _Atomic uint64_t hits[FAULTS];
};

struct head {                         /* chaos/power.py reads the same layout */
    uint64_t magic, time, offset;     /* offset: of a write, of a cut, or the number of a sync */
    uint32_t kind, file, length, pid;
};

static struct control *control;
static const char *target;
static int log_fd = -1;
static unsigned char files[FILES];    /* which file of the store a descriptor is */
static _Atomic uint64_t drawn, synced;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void start(void) {
    const char *page = getenv("CHAOS_CONTROL"), *log = getenv("CHAOS_LOG");
    target = getenv("CHAOS_TARGET");
    if (!page || !log || !target) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, page, O_RDWR);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    control = mapped == MAP_FAILED ? NULL : mapped;
}

static enum file file_at(const char *path) {
    size_t length = target ? strlen(target) : 0;
    if (!control || !length || strncmp(path, target, length)) return OTHER;
    if (!path[length]) return DATABASE;
    return strcmp(path + length, "-wal") == 0 ? WAL : path[length] == '-' ? BESIDE : OTHER;
}

static enum file file_of(int fd) { return control && fd >= 0 && fd < FILES ? files[fd] : OTHER; }

/* Whether this call fails in this way. Every call draws a number, so that a rate is a rate. */
static int fails(int fd, enum fault fault) {
    if (file_of(fd) == OTHER || !(control->faults >> fault & 1)) return 0;
    int32_t pid = (int32_t)getpid(), hit = 0;
    for (int at = 0; at < VICTIMS; at++) hit |= control->victims[at] == pid;
    if (!hit) return 0;
    uint64_t x = control->seed + ((uint64_t)pid << 32) + atomic_fetch_add(&drawn, 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    if ((x ^ x >> 31) % 1000 >= control->per_mille) return 0;
    atomic_fetch_add(&control->hits[fault], 1);
    return 1;
}

/* One record, appended in one call and before the act itself: what is on the disk is always in the log. */
static void record(enum record kind, enum file file, uint64_t offset, const void *data, size_t length) {
    if (!control || !control->recording || (file != DATABASE && file != WAL)) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct head head = {0x7061a5c0ffee1dull, (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec, offset,
                        kind, file, (uint32_t)length, (uint32_t)getpid()};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, length}};
    syscall(SYS_writev, log_fd, parts, data ? 2 : 1);
}

static int opened(int fd, const char *path) {
    if (fd >= 0 && fd < FILES) files[fd] = (unsigned char)file_at(path);
    return fd;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        return opened(real(path, flags, mode), path); \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    REAL(int, "close", int);
    if (fd >= 0 && fd < FILES) files[fd] = OTHER;
    return real(fd);
}

/* How many bytes of a write go through; -1 with errno when it fails. */
static ssize_t allowed(int fd, size_t length) {
    if (fails(fd, WRITE_EIO)) return errno = EIO, -1;
    if (fails(fd, WRITE_ENOSPC)) return errno = ENOSPC, -1;
    return length > 1 && fails(fd, WRITE_SHORT) ? (ssize_t)(length / 2) : (ssize_t)length;
}

#define PWRITE(name, off) \
    ssize_t name(int fd, const void *data, size_t length, off offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, off); \
        ssize_t part = file_of(fd) == OTHER ? (ssize_t)length : allowed(fd, length); \
        if (part < 0) return part; \
        record(WRITE, file_of(fd), (uint64_t)offset, data, (size_t)part); \
        return real(fd, data, (size_t)part, offset); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PREAD(name, off) \
    ssize_t name(int fd, void *data, size_t length, off offset) { \
        REAL(ssize_t, #name, int, void *, size_t, off); \
        if (fails(fd, READ_EIO)) return errno = EIO, -1; \
        return real(fd, data, length, offset); \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define SYNC(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        if (fails(fd, SYNC_EIO)) return errno = EIO, -1; \
        uint64_t number = atomic_fetch_add(&synced, 1); \
        record(SYNC_BEGIN, file_of(fd), number, NULL, 0); \
        int result = real(fd); \
        if (result == 0) record(SYNC_END, file_of(fd), number, NULL, 0); \
        return result; \
    }
SYNC(fsync)
SYNC(fdatasync)

#define FTRUNCATE(name, off) \
    int name(int fd, off length) { \
        REAL(int, #name, int, off); \
        if (fails(fd, TRUNCATE_EIO)) return errno = EIO, -1; \
        record(TRUNCATE, file_of(fd), (uint64_t)length, NULL, 0); \
        return real(fd, length); \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    record(UNLINK, file_at(path), 0, NULL, 0);
    return real(path);
}
