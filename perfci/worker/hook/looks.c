/* Records which of a side's files a process looks at. LD_PRELOAD brings it into workers and into
   all that they start.

   Each wrapper calls the C library first and changes neither the result nor errno. A path below the
   side's own folders is written to the events of PERFCI_WATCH (perfci_watch/ownership.py), once.
   A Python begins when its watch says so: before that, its start looks for modules. The watch talks
   to this library through access(2) on paths that begin with CONTROL. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __GLIBC__
#error "only glibc's functions are wrapped"
#endif

#define CONTROL "/\x01perfci-looks/"
#define BETWEEN '\x1f'
#define MOST_ROOTS 64
#define SLOTS (1u << 15) /* of paths that were written down */
#define MOST_PROBES 256u

static char *settings, *record;
static const char *roots[MOST_ROOTS];
static size_t root_lengths[MOST_ROOTS];
static int root_count, file = -1;
static dev_t device;
static ino_t inode;
static _Atomic uint64_t seen[SLOTS];
static volatile int watching, python, incomplete, keeps;
static char buffer[1 << 15];
static size_t buffered;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static __thread int paused, skips_listing;

/* A user may have closed it, and its number may be another's. */
static int is_record_open(void) {
  struct stat status;
  return file >= 0 && !syscall(SYS_fstat, file, &status) && status.st_dev == device &&
         status.st_ino == inode;
}

static int opened_record(void) {
  struct stat status;
  if (is_record_open()) return file;
  int low = (int)syscall(SYS_openat, AT_FDCWD, record, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (low < 0 || syscall(SYS_fstat, low, &status)) return -1;
  int high = fcntl(low, F_DUPFD_CLOEXEC, 500); /* out of the way of programs that count */
  if (high >= 0) syscall(SYS_close, low);
  device = status.st_dev;
  inode = status.st_ino;
  return file = high >= 0 ? high : low;
}

/* Return whether this is the first time. */
static int is_new(const char *how, const char *path) {
  uint64_t hash = 14695981039346656037u;
  for (; *how; how++) hash = (hash ^ (unsigned char)*how) * 1099511628211u;
  for (; *path; path++) hash = (hash ^ (unsigned char)*path) * 1099511628211u;
  hash |= 1; /* 0 is a free slot */
  for (uint64_t probe = 0; probe < MOST_PROBES; probe++) {
    _Atomic uint64_t *slot = &seen[((hash >> 15) + probe) % SLOTS];
    uint64_t there = 0;
    if (atomic_compare_exchange_strong(slot, &there, hash)) return 1;
    if (there == hash) return 0;
  }
  incomplete = 1;
  return 0;
}

static void write_down(const char *lines, size_t length) {
  if (length && syscall(SYS_write, opened_record(), lines, length) != (long)length) incomplete = 1;
}

/* A worker's lines wait until its watch asks for them, as it does at the end: one that ends before
   isn't believed. Its children, of which nobody may ask, write at once. */
static void keep(const char *line, size_t length) {
  if (!keeps || atomic_flag_test_and_set(&busy)) return write_down(line, length);
  if (buffered + length > sizeof buffer) {
    write_down(buffer, buffered);
    buffered = 0;
  }
  memcpy(buffer + buffered, line, length);
  buffered += length;
  atomic_flag_clear(&busy);
}

__attribute__((destructor)) static void flush(void) {
  if (atomic_flag_test_and_set(&busy)) return;
  write_down(buffer, buffered);
  buffered = 0;
  atomic_flag_clear(&busy);
}

static void begin_in_fork(void) {
  atomic_flag_clear(&busy); /* the thread that was at it is the parent's */
  keeps = 0;
  flush();
}

static void say(const char *how, const char *path, const char *name) {
  char line[PATH_MAX + 300];
  size_t sizes[] = {strlen(how), strlen(path), strlen(name)}, length = 0;
  const char *parts[] = {how, path, name};
  if (!is_new(how, path)) return;
  if (sizes[0] + sizes[1] + sizes[2] + 3 > sizeof line) return;
  for (int part = 0; part < 3; part++) {
    memcpy(line + length, parts[part], sizes[part]);
    length += sizes[part];
    line[length++] = part < 2 ? BETWEEN : '\0';
  }
  keep(line, length);
}

/* Return whether the path, as a file or as a folder, is below a root. */
static int is_own(const char *path, size_t length) {
  for (int root = 0; root < root_count; root++) {
    size_t size = root_lengths[root], folder = length + 1 == size && roots[root][length] == '/';
    if ((length >= size || folder) && !memcmp(path, roots[root], folder ? length : size)) return 1;
  }
  return 0;
}

/* Write the absolute path into `to`, without `.` and `..`; return its length, 0 where there's none. */
static size_t resolved(char *to, int at, const char *path) {
  size_t length = 0;
  if (*path != '/') {
    char link[40];
    if (at == AT_FDCWD) {
      long size = syscall(SYS_getcwd, to, PATH_MAX);
      if (size <= 1 || *to != '/') return 0;
      length = (size_t)size - 1;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", at);
      long size = syscall(SYS_readlinkat, AT_FDCWD, link, to, PATH_MAX);
      if (size <= 0 || *to != '/') return 0;
      length = (size_t)size;
    }
    if (length == 1) length = 0; /* the root */
  }
  while (*path) {
    size_t size = strcspn(path, "/");
    if (size == 2 && path[0] == '.' && path[1] == '.') {
      while (length && to[--length] != '/') continue;
    } else if (size && !(size == 1 && *path == '.')) {
      if (length + size + 2 > PATH_MAX) return 0;
      to[length++] = '/';
      memcpy(to + length, path, size);
      length += size;
    }
    path += size + (path[size] == '/');
  }
  to[length] = '\0';
  return length;
}

__attribute__((noinline)) static void look(const char *how, int at, const char *path) {
  char full[PATH_MAX];
  int before = errno;
  if (paused || !path || !*path || before == EFAULT) return;
  if (*path == '/' && !strstr(path, "/.") && !strstr(path, "//") && !is_own(path, strlen(path)))
    return;
  size_t length = resolved(full, at, path);
  if (length && is_own(full, length)) say(how, full, "");
  errno = before;
}

static void listed(int at, const char *path) {
  if (!skips_listing && watching) look("list", at, path);
  skips_listing = 0;
}

static void started(const char *path) {
  int before = errno;
  if (watching && python && path && !paused) say("exec", path, "");
  if (watching) flush();
  errno = before;
}

/* Read whose files count, and where to write. Return whether there are any. */
static int read_settings(void) {
  const char *text = getenv("PERFCI_WATCH");
  if (is_record_open()) syscall(SYS_close, file); /* a fork goes on in another */
  file = -1;
  root_count = 0;
  if (!text || !(settings = strdup(text))) return 0; /* an older copy may be in use: it stays */
  record = NULL;
  char *rest = NULL, *inner = NULL;
  for (char *entry = strtok_r(settings, "\x1e", &rest); entry; entry = strtok_r(NULL, "\x1e", &rest)) {
    char *name = strtok_r(entry, "\x1f", &inner), *value;
    if (!name) continue;
    while ((value = strtok_r(NULL, "\x1f", &inner)))
      if (!strcmp(name, "events")) {
        record = value;
      } else if (!strcmp(name, "own")) {
        if (root_count == MOST_ROOTS) return 0;
        roots[root_count] = value;
        root_lengths[root_count++] = strlen(value);
      }
  }
  return record && root_count;
}

static int is_python(const char *link, char *program) {
  long size = syscall(SYS_readlinkat, AT_FDCWD, link, program, PATH_MAX - 1);
  program[size > 0 ? size : 0] = '\0';
  const char *name = strrchr(program, '/');
  return name && (!strncmp(name, "/python", 7) || !strncmp(name, "/pypy", 5));
}

__attribute__((constructor)) static void arrive(int count, char **words) {
  char program[PATH_MAX], link[40], number[40];
  int before = errno;
  pthread_atfork(NULL, NULL, begin_in_fork);
  python = is_python("/proc/self/exe", program);
  if (read_settings()) {
    snprintf(number, sizeof number, "%d", getpid());
    if (python) say("python", program, number);
    snprintf(link, sizeof link, "/proc/%d/exe", getppid());
    if (!python && count && is_python(link, program)) say("exec", words[0], "");
    watching = !python;
  }
  errno = before;
}

/* `b`: begin; `k`: keep lines; `+` and `-`: pause, go on; `l`: the listing that follows is known; `c`: write all
   of it down; was that possible? */
static int control(char order) {
  if (order == 'b') watching = read_settings();
  if (order == 'k') keeps = 1;
  if (order == '+') paused++;
  if (order == '-') paused--;
  if (order == 'l') skips_listing = 1;
  if (order == 'c') flush();
  return (order == 'b' && !watching) || (order == 'c' && incomplete) ? -1 : 0;
}

#define REAL(type, name, parameters)                                                     \
  static type(*real_##name) parameters;                                                  \
  __attribute__((constructor)) static void find_##name(void) {                           \
    if (!real_##name) real_##name = (type(*) parameters)dlsym(RTLD_NEXT, #name);         \
  }
#define CALL(type, name, arguments, after)                                               \
  int before = errno;                                                                    \
  find_##name();                                                                         \
  errno = 0;                                                                             \
  type result = real_##name arguments;                                                   \
  if (watching) after;                                                                   \
  if (!errno) errno = before;                                                            \
  return result;
#define WRAPPED(type, name, parameters, arguments, after)                                \
  REAL(type, name, parameters)                                                           \
  type name parameters { CALL(type, name, arguments, after) }
#define LOOKS(name, parameters, arguments, at, path) \
  WRAPPED(int, name, parameters, arguments, look("stat", at, path))

LOOKS(stat, (const char *path, struct stat *to), (path, to), AT_FDCWD, path)
LOOKS(stat64, (const char *path, struct stat64 *to), (path, to), AT_FDCWD, path)
LOOKS(lstat, (const char *path, struct stat *to), (path, to), AT_FDCWD, path)
LOOKS(lstat64, (const char *path, struct stat64 *to), (path, to), AT_FDCWD, path)
LOOKS(fstatat, (int at, const char *path, struct stat *to, int how), (at, path, to, how), at, path)
LOOKS(fstatat64, (int at, const char *path, struct stat64 *to, int how), (at, path, to, how), at, path)
LOOKS(statx, (int at, const char *path, int how, unsigned what, struct statx *to),
      (at, path, how, what, to), at, path)
LOOKS(faccessat, (int at, const char *path, int mode, int how), (at, path, mode, how), at, path)
LOOKS(euidaccess, (const char *path, int mode), (path, mode), AT_FDCWD, path)
LOOKS(eaccess, (const char *path, int mode), (path, mode), AT_FDCWD, path)
LOOKS(chdir, (const char *path), (path), AT_FDCWD, path)
WRAPPED(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size),
        look("stat", AT_FDCWD, path))
WRAPPED(ssize_t, readlinkat, (int at, const char *path, char *to, size_t size), (at, path, to, size),
        look("stat", at, path))
WRAPPED(char *, realpath, (const char *path, char *to), (path, to), look("stat", AT_FDCWD, path))
WRAPPED(char *, canonicalize_file_name, (const char *path), (path), look("stat", AT_FDCWD, path))

/* What programs call that were linked with a glibc before 2.33. */
#define OLD_STAT(name, at, flags)                                            \
  int name(int version, const char *path, void *to) {                        \
    (void)version;                                                           \
    int result = (int)syscall(SYS_newfstatat, at, path, to, flags);          \
    if (watching) look("stat", at, path);                                    \
    return result;                                                           \
  }
#define OLD_STAT_AT(name)                                                    \
  int name(int version, int at, const char *path, void *to, int flags) {     \
    (void)version;                                                           \
    int result = (int)syscall(SYS_newfstatat, at, path, to, flags);          \
    if (watching) look("stat", at, path);                                    \
    return result;                                                           \
  }
OLD_STAT(__xstat, AT_FDCWD, 0)
OLD_STAT(__xstat64, AT_FDCWD, 0)
OLD_STAT(__lxstat, AT_FDCWD, AT_SYMLINK_NOFOLLOW)
OLD_STAT(__lxstat64, AT_FDCWD, AT_SYMLINK_NOFOLLOW)
OLD_STAT_AT(__fxstatat)
OLD_STAT_AT(__fxstatat64)

static int is_control(const char *path) {
  return path && !strncmp(path, CONTROL, sizeof CONTROL - 1);
}
REAL(int, access, (const char *, int))
int access(const char *path, int mode) {
  if (is_control(path)) return control(path[sizeof CONTROL - 1]);
  CALL(int, access, (path, mode), look("stat", AT_FDCWD, path))
}

/* What is only written says nothing of what was there. */
static void opened(int descriptor, int at, const char *path, int flags) {
  if ((flags & O_ACCMODE) == O_WRONLY || (flags & O_TRUNC)) return;
  look(descriptor < 0 || (flags & O_DIRECTORY) ? "stat" : "open", at, path);
}
#define OPENS(name, parameters, arguments, at)                                \
  REAL(int, name, parameters)                                                 \
  int name parameters {                                                       \
    va_list rest;                                                             \
    va_start(rest, flags);                                                    \
    mode_t mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                             \
    CALL(int, name, arguments, opened(result, at, path, flags))               \
  }
OPENS(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
OPENS(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int at, const char *path, int flags) { return openat(at, path, flags); }
int __openat64_2(int at, const char *path, int flags) { return openat64(at, path, flags); }

#define OPENS_STREAM(name)                                                                     \
  WRAPPED(FILE *, name, (const char *path, const char *mode), (path, mode),                    \
          if (*mode == 'r') look(result ? "open" : "stat", AT_FDCWD, path))
OPENS_STREAM(fopen)
OPENS_STREAM(fopen64)

REAL(DIR *, opendir, (const char *))
DIR *opendir(const char *path) {
  find_opendir();
  DIR *result = real_opendir(path);
  listed(AT_FDCWD, path);
  return result;
}
REAL(DIR *, fdopendir, (int))
DIR *fdopendir(int folder) {
  find_fdopendir();
  DIR *result = real_fdopendir(folder);
  listed(folder, ".");
  return result;
}
#define LISTS(type, name, parameters, arguments, at, path) \
  WRAPPED(type, name, parameters, arguments, look("list", at, path))
#define SCANS(name, entry)                                                                     \
  LISTS(int, name,                                                                             \
        (const char *path, struct entry ***to, int (*choose)(const struct entry *),            \
         int (*order)(const struct entry **, const struct entry **)),                          \
        (path, to, choose, order), AT_FDCWD, path)
SCANS(scandir, dirent)
SCANS(scandir64, dirent64)

#define STARTS(name, parameters, arguments, path) \
  REAL(int, name, parameters)                     \
  int name parameters {                           \
    find_##name();                                \
    started(path);                                \
    return real_##name arguments;                 \
  }
STARTS(execve, (const char *path, char *const words[], char *const all[]), (path, words, all), path)
STARTS(execv, (const char *path, char *const words[]), (path, words), path)
STARTS(execvp, (const char *path, char *const words[]), (path, words), path)
STARTS(execvpe, (const char *path, char *const words[], char *const all[]), (path, words, all), path)
STARTS(fexecve, (int program, char *const words[], char *const all[]), (program, words, all), "fexecve")
#define SPAWNS(name)                                                                            \
  STARTS(name,                                                                                  \
         (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,              \
          const posix_spawnattr_t *how, char *const words[], char *const all[]),                \
         (pid, path, actions, how, words, all), path)
SPAWNS(posix_spawn)
SPAWNS(posix_spawnp)
