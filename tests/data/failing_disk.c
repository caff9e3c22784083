/* Fails the N-th change that a process makes to a file below a folder, and all that follow.
 *
 * For LD_PRELOAD. FAULTS_ROOT: the folder. FAULTS_AT: which change fails, from 1; 0 fails none.
 * FAULTS_ERRNO: with what. FAULTS_ONCE: set, only that one fails. FAULTS_COUNT: a file that has the
 * number of changes at the end. The first process alone is counted: its children go unharmed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX], count_file[PATH_MAX];
static long at, changes;
static int error, once;
static pid_t counted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("FAULTS_ROOT");
  if (!folder || getenv("FAULTS_OFF")) return;
  strncpy(root, folder, sizeof root - 1);
  at = atol(getenv("FAULTS_AT"));
  error = atoi(getenv("FAULTS_ERRNO"));
  once = getenv("FAULTS_ONCE") != NULL;
  strncpy(count_file, getenv("FAULTS_COUNT"), sizeof count_file - 1);
  counted = getpid();
  setenv("FAULTS_OFF", "1", 1);
}

__attribute__((destructor)) static void end(void) {
  if (!counted || getpid() != counted) return;
  FILE *file = fopen(count_file, "w");
  if (file) {
    fprintf(file, "%ld\n", changes);
    fclose(file);
  }
}

static int fails(int below) {
  if (!below || !counted || getpid() != counted) return 0;
  pthread_mutex_lock(&lock);
  long number = ++changes;
  pthread_mutex_unlock(&lock);
  if (!at || number < at || (once && number > at)) return 0;
  errno = error;
  return 1;
}

static int below(const char *path) {
  return path && root[0] && strncmp(path, root, strlen(root)) == 0 && path[strlen(root)] == '/';
}

static int open_below(int fd) {
  if (!counted) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return below(path);
}

static int named_below(int folder, const char *name) {
  char path[PATH_MAX];
  if (!counted || !name) return 0;
  if (name[0] == '/') return below(name);
  if (folder != AT_FDCWD) return open_below(folder);
  return getcwd(path, sizeof path) && (below(path) || strcmp(path, root) == 0);
}

#define REAL(result, name, ...)                               \
  static result (*real)(__VA_ARGS__);                         \
  if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define ON_OPEN(result, name, declared, given)                \
  result name declared {                                      \
    REAL(result, #name, );                                    \
    return fails(open_below(fd)) ? -1 : ((result(*) declared)real) given; \
  }

ON_OPEN(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
ON_OPEN(ssize_t, writev, (int fd, const struct iovec *from, int parts), (fd, from, parts))
ON_OPEN(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t to), (fd, from, size, to))
ON_OPEN(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t to), (fd, from, size, to))
ON_OPEN(int, fsync, (int fd), (fd))
ON_OPEN(int, fdatasync, (int fd), (fd))
ON_OPEN(int, ftruncate, (int fd, off_t size), (fd, size))
ON_OPEN(int, ftruncate64, (int fd, off64_t size), (fd, size))

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  return fails(named_below(AT_FDCWD, to)) ? -1 : real(from, to);
}

int renameat(int of, const char *from, int folder, const char *to) {
  REAL(int, "renameat", int, const char *, int, const char *);
  return fails(named_below(folder, to)) ? -1 : real(of, from, folder, to);
}

int link(const char *from, const char *to) {
  REAL(int, "link", const char *, const char *);
  return fails(named_below(AT_FDCWD, to)) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t);
  return fails(named_below(AT_FDCWD, path)) ? -1 : real(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
  REAL(int, "mkdirat", int, const char *, mode_t);
  return fails(named_below(folder, path)) ? -1 : real(folder, path, mode);
}

#define ON_CREATE(name)                                       \
  int name(const char *path, int flags, ...) {                \
    REAL(int, #name, const char *, int, ...);                 \
    va_list more;                                             \
    va_start(more, flags);                                    \
    mode_t mode = va_arg(more, mode_t);                       \
    va_end(more);                                             \
    if ((flags & O_CREAT) && fails(named_below(AT_FDCWD, path))) return -1; \
    return real(path, flags, mode);                           \
  }

ON_CREATE(open)
ON_CREATE(open64)

#define ON_CREATE_AT(name)                                    \
  int name(int folder, const char *path, int flags, ...) {    \
    REAL(int, #name, int, const char *, int, ...);            \
    va_list more;                                             \
    va_start(more, flags);                                    \
    mode_t mode = va_arg(more, mode_t);                       \
    va_end(more);                                             \
    if ((flags & O_CREAT) && fails(named_below(folder, path))) return -1; \
    return real(folder, path, flags, mode);                   \
  }

ON_CREATE_AT(openat)
ON_CREATE_AT(openat64)
