// A disk that fails on purpose, for processes started with LD_PRELOAD: see tests/faults/shim.rs.
//
// Calls that change files below FAULT_DIR are counted if the file's name is FAULT_FILE, or all of them if that is
// empty. At the call with the number FAULT_AT the disk does what FAULT_KIND says:
//
//   write-eio, write-enospc   this write fails
//   write-full                this write and all later ones fail with ENOSPC
//   write-short               half of this write is made, and the next one fails with EIO
//   sync-eio                  this sync fails and loses nothing it could be asked for; later ones succeed
//   power                     power is lost before this call: of what was written since each file's last sync a part
//                             chosen by FAULT_SEED is undone in sectors of 512 bytes, and the process ends with 137
//
// Not modelled: names. SQLite and the store sync a directory after making a file in it. The index of the write-ahead
// log (-shm) is memory that happens to have a name, and is left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, MAX_FILES = 64, DIED = 137 };

// What one sector held when its file was last synced.
struct sector {
    uint64_t number;
    struct sector *next;
    char before[SECTOR];
};

// A file with writes that are not synced.
struct file {
    dev_t device;
    ino_t inode;
    char path[PATH_MAX];
    off_t synced_size;
    int known;
    struct sector *buckets[4096];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[MAX_FILES];
static long calls;
static int short_write_made, disk_is_full;
static uint64_t seed;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

__attribute__((constructor)) static void find_real_calls(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    seed = strtoull(setting("FAULT_SEED"), NULL, 10) * 2654435769u + 1;
}

static int kind_is(const char *kind) { return strcmp(setting("FAULT_KIND"), kind) == 0; }

static uint64_t random_below(uint64_t bound) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (seed >> 11) % bound;
}

// The path of a descriptor if the file is one of those that fail; errno stays as it was.
static int is_ours(int fd, char *path) {
    char link[64];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    const char *dir = setting("FAULT_DIR"), *name = setting("FAULT_FILE");
    size_t below = strlen(dir);
    if (below == 0 || strncmp(path, dir, below) != 0 || path[below] != '/') return 0;
    const char *last = strrchr(path, '/') + 1;
    if (strlen(last) > 4 && strcmp(last + strlen(last) - 4, "-shm") == 0) return 0;
    return *name == 0 || strcmp(name, last) == 0;
}

static struct file *known_file(int fd, const char *path) {
    struct stat now;
    if (fstat(fd, &now) != 0) abort();
    for (int i = 0; i < MAX_FILES; i++) {
        struct file *file = &files[i];
        if (file->known && (file->device != now.st_dev || file->inode != now.st_ino)) continue;
        if (!file->known) {
            file->known = 1, file->device = now.st_dev, file->inode = now.st_ino;
            file->synced_size = now.st_size;
            strcpy(file->path, path);
        }
        return file;
    }
    abort();
}

static struct sector **find_sector(struct file *file, uint64_t number) {
    struct sector **place = &file->buckets[number % 4096];
    while (*place && (*place)->number != number) place = &(*place)->next;
    return place;
}

// Before [from, to) of a file changes: keep what is there, unless it changed since the last sync already.
static void keep(int fd, const char *path, off_t from, off_t to) {
    struct file *file = known_file(fd, path);
    for (uint64_t number = from / SECTOR; (off_t)(number * SECTOR) < to; number++) {
        struct sector **place = find_sector(file, number);
        if (*place) continue;
        struct sector *sector = calloc(1, sizeof *sector);
        if (!sector) abort();
        sector->number = number;
        // Not through a descriptor of our own: closing it would drop the locks this process has on the file.
        if (pread(fd, sector->before, SECTOR, number * SECTOR) < 0) abort();
        *place = sector;
    }
}

static void forget(int fd, const char *path) {
    struct file *file = known_file(fd, path);
    struct stat now;
    if (fstat(fd, &now) != 0) abort();
    file->synced_size = now.st_size;
    for (int i = 0; i < 4096; i++) {
        while (file->buckets[i]) {
            struct sector *gone = file->buckets[i];
            file->buckets[i] = gone->next;
            free(gone);
        }
    }
}

// Undoes what a disk may not have: everything, nothing, or any part.
static void lose(struct file *file, int how) {
    int fd = open(file->path, O_RDWR | O_CLOEXEC);
    struct stat now;
    if (fd < 0 || fstat(fd, &now) != 0 || now.st_ino != file->inode) return;
    for (int i = 0; i < 4096; i++) {
        for (struct sector *sector = file->buckets[i]; sector; sector = sector->next) {
            if (how == 0 || (how > 1 && random_below(4) < (uint64_t)how)) continue;
            if (real_pwrite(fd, sector->before, SECTOR, sector->number * SECTOR) < 0) abort();
        }
    }
    // Undoing a whole sector at the end may have made the file longer than it ever was.
    off_t longest = now.st_size > file->synced_size ? now.st_size : file->synced_size;
    off_t size = now.st_size;
    if (how == 1 || (how > 1 && random_below(3) == 0)) size = file->synced_size;
    else if (how > 1 && now.st_size > file->synced_size && random_below(2) == 0)
        size = file->synced_size + random_below((now.st_size - file->synced_size) / SECTOR + 1) * SECTOR;
    if (size > longest) size = longest;
    if (real_ftruncate(fd, size) != 0) abort();
    close(fd);
}

static void lose_power(void) {
    int how = random_below(4);
    for (int i = 0; i < MAX_FILES; i++)
        if (files[i].known) lose(&files[i], how);
    _exit(DIED);
}

// Counts a call of the kind that is to fail; true if it is the one.
static int is_due(void) {
    calls++;
    if (calls != atol(setting("FAULT_AT"))) return 0;
    if (kind_is("power")) lose_power();
    return 1;
}

// What a write does instead of writing: 0 nothing special, -1 it fails with errno, 1 half of it is made.
static int write_fault(void) {
    if (disk_is_full) return errno = ENOSPC, -1;
    if (short_write_made) return short_write_made = 0, errno = EIO, -1;
    if (kind_is("sync-eio") || !is_due()) return 0;
    if (kind_is("write-short")) return short_write_made = 1;
    if (kind_is("write-full")) disk_is_full = 1;
    errno = kind_is("write-eio") ? EIO : ENOSPC;
    return -1;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t at) {
    char path[PATH_MAX];
    if (!is_ours(fd, path)) return real_pwrite(fd, data, length, at);
    pthread_mutex_lock(&lock);
    int fault = write_fault();
    if (kind_is("power")) keep(fd, path, at, at + length);
    ssize_t written = fault < 0 ? -1 : real_pwrite(fd, data, fault ? length / 2 : length, at);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return pwrite64(fd, data, length, at); }

ssize_t write(int fd, const void *data, size_t length) {
    char path[PATH_MAX];
    if (!is_ours(fd, path)) return real_write(fd, data, length);
    // Only the lock file is written at its position, and only once: the position is where the data goes.
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t written = pwrite64(fd, data, length, at);
    if (written > 0) lseek(fd, at + written, SEEK_SET);
    return written;
}

static int sync_file(int fd, int (*real_sync)(int)) {
    char path[PATH_MAX];
    struct stat now;
    if (!is_ours(fd, path) || fstat(fd, &now) != 0 || !S_ISREG(now.st_mode)) return real_sync(fd);
    pthread_mutex_lock(&lock);
    int result = 0;
    if (kind_is("power")) {
        is_due();
        // What a sync is for is modelled here, so the disk itself need not be bothered.
        forget(fd, path);
    } else if (kind_is("sync-eio") && is_due()) {
        result = -1;
    } else {
        result = real_sync(fd);
    }
    pthread_mutex_unlock(&lock);
    if (result != 0) errno = EIO;
    return result;
}

int fsync(int fd) { return sync_file(fd, real_fsync); }
int fdatasync(int fd) { return sync_file(fd, real_fdatasync); }

int ftruncate64(int fd, off_t size) {
    char path[PATH_MAX];
    struct stat now;
    if (!is_ours(fd, path) || !kind_is("power") || fstat(fd, &now) != 0) return real_ftruncate(fd, size);
    pthread_mutex_lock(&lock);
    is_due();
    if (size < now.st_size) keep(fd, path, size, now.st_size);
    else known_file(fd, path);
    int result = real_ftruncate(fd, size);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
