// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// To be preloaded: lets reading below some path fail, as a disk, a network file system or a full table of
/// files does; writes down what is synced, makes a sync slow or leaves it out, and lets a file system stall.
///
///   READ_FAULTS_PATH=checkpoints   calls whose path, or whose file's path, contains this are counted
///   READ_FAULTS_AT=7               from this one on (the first is 1) they fail
///   READ_FAULTS_COUNT=1            so many of them; without it all
///   READ_FAULTS_ERRNO=5            with this error
///   READ_FAULTS_OPENS=1            of these calls only those that open something
///   SYNC_LOG=FILE                  gets a line for each fsync, fdatasync and rename: "fsync PATH", "rename FROM TO"
///   SYNC_SLOW_PATH=manifest.json   the first fsync of a file whose path contains this takes
///   SYNC_SLOW_MS=4000              so long
///   NO_SYNC=1                      files are not synced: tests kill processes, never the machine, and need not
///                                  wait for the disk
///   STALL_PATH=run                 all calls whose path, or whose file's path, contains this wait
///   STALL_WHILE=FILE               while there is this file
/// Pauses before the next attempt are a tenth as long where reading fails.
/// Counted: open, opendir, read, pread, readdir, stat, lstat, fstat. What would create a file is not reading.
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier): the C library asks for it
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

/// What the environment said at the first call: MPI_Init changes it while threads read.
enum {
  kReadPath,
  kReadAt,
  kReadCount,
  kReadErrno,
  kReadOpens,
  kSyncLog,
  kSlowPath,
  kSlowMs,
  kNoSync,
  kStallPath,
  kStallSign,
  kSettings
};
static const char* settings[kSettings];
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

static void read_settings(void) {
  static const char* const names[kSettings] = {"READ_FAULTS_PATH",  "READ_FAULTS_AT",    "READ_FAULTS_COUNT",
                                               "READ_FAULTS_ERRNO", "READ_FAULTS_OPENS", "SYNC_LOG",
                                               "SYNC_SLOW_PATH",    "SYNC_SLOW_MS",      "NO_SYNC",
                                               "STALL_PATH",        "STALL_WHILE"};
  for (int i = 0; i < kSettings; ++i) {
    const char* text = getenv(names[i]);
    settings[i] = text == NULL ? NULL : strdup(text);
  }
}

static const char* setting(int which) {
  pthread_once(&read_once, read_settings);
  return settings[which];
}

static long number(int which, long otherwise) {
  const char* text = setting(which);
  return text != NULL ? strtol(text, NULL, 10) : otherwise;
}

static void stall(const char* path) {
  const char *part = setting(kStallPath), *sign = setting(kStallSign);
  if (part == NULL || sign == NULL || path == NULL || strstr(path, part) == NULL) return;
  const struct timespec pause = {0, 5000000};
  const int before = errno;
  while (access(sign, F_OK) == 0) nanosleep(&pause, NULL);
  errno = before;
}

static bool call_fails(const char* path, bool opens) {
  stall(path);
  const char* part = setting(kReadPath);
  if (part == NULL || path == NULL || strstr(path, part) == NULL) return false;
  if (!opens && number(kReadOpens, 0) != 0) return false;
  const long call = ++calls, first = number(kReadAt, 0), count = number(kReadCount, -1);
  if (first <= 0 || call < first || (count >= 0 && call >= first + count)) return false;
  errno = (int)number(kReadErrno, EIO);
  return true;
}

static bool open_fails(const char* path) {
  return call_fails(path, true);
}

static bool fails(const char* path) {
  return call_fails(path, false);
}

/// False if the descriptor stands for nothing with a name.
static bool path_of(int fd, char path[4096]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, 4095);
  if (size < 0) return false;
  path[size] = 0;
  return true;
}

static bool file_fails(int fd) {
  if (setting(kReadPath) == NULL && setting(kStallPath) == NULL) return false;
  char path[4096];
  return path_of(fd, path) && fails(path);
}

static void note(const char* call, const char* path, const char* to) {
  const char* name = setting(kSyncLog);
  FILE* log = name != NULL ? fopen(name, "a") : NULL;
  if (log == NULL) return;
  fprintf(log, "%s %s%s%s\n", call, path, to[0] != 0 ? " " : "", to);
  fclose(log);
}

static void file_stalls(int fd) {
  char path[4096];
  if (setting(kStallPath) != NULL && path_of(fd, path)) stall(path);
}

static void be_slow(const char* path) {
  static atomic_flag done = ATOMIC_FLAG_INIT;
  const char* part = setting(kSlowPath);
  if (part == NULL || strstr(path, part) == NULL || atomic_flag_test_and_set(&done)) return;
  const long ms = number(kSlowMs, 0);
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&pause, NULL);
}

static bool syncs_nothing(int fd) {
  return setting(kNoSync) != NULL && fcntl(fd, F_GETFD) >= 0;
}

#define CALLS(X)                                                                                    \
  X(open)                                                                                           \
  X(open64)                                                                                         \
  X(opendir)                                                                                        \
  X(read) X(pread) X(readdir) X(stat) X(lstat) X(fstat) X(write) X(ftruncate) X(fsync) X(fdatasync) \
      X(rename) X(nanosleep)
#define FIELD(name) __typeof__(&name) name;
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FIND(name) real.name = NEXT(name);
/// Constructors of other libraries may call before ours has run.
#define REAL(name) (real.name != NULL ? real.name : NEXT(name))

/// The calls behind ours, found before main(): the handler of a signal writes, too, and may interrupt dlsym, whose lock
/// would then be waited for by the thread that has it.
static struct { CALLS(FIELD) } real;

__attribute__((constructor)) static void find_calls(void) {
  CALLS(FIND)
  pthread_once(&read_once, read_settings);
}

static mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 ? (mode_t)va_arg(more, int) : 0;
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  stall(path);
  if ((flags & O_CREAT) == 0 && open_fails(path)) return -1;
  return REAL(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  stall(path);
  if ((flags & O_CREAT) == 0 && open_fails(path)) return -1;
  return REAL(open64)(path, flags, mode);
}

DIR* opendir(const char* path) {
  return open_fails(path) ? NULL : REAL(opendir)(path);
}

ssize_t read(int fd, void* bytes, size_t count) {
  return file_fails(fd) ? -1 : REAL(read)(fd, bytes, count);
}

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  return file_fails(fd) ? -1 : REAL(pread)(fd, bytes, count, offset);
}

struct dirent* readdir(DIR* directory) {
  return file_fails(dirfd(directory)) ? NULL : REAL(readdir)(directory);
}

int stat(const char* path, struct stat* info) {
  return fails(path) ? -1 : REAL(stat)(path, info);
}

int lstat(const char* path, struct stat* info) {
  return fails(path) ? -1 : REAL(lstat)(path, info);
}

int fstat(int fd, struct stat* info) {
  return file_fails(fd) ? -1 : REAL(fstat)(fd, info);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  file_stalls(fd);
  return REAL(write)(fd, bytes, count);
}

int ftruncate(int fd, off_t size) {
  file_stalls(fd);
  return REAL(ftruncate)(fd, size);
}

int fsync(int fd) {
  file_stalls(fd);
  char path[4096];
  if (path_of(fd, path)) {
    be_slow(path);
    note("fsync", path, "");
  }
  return syncs_nothing(fd) ? 0 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
  file_stalls(fd);
  char path[4096];
  if (path_of(fd, path)) note("fdatasync", path, "");
  return syncs_nothing(fd) ? 0 : REAL(fdatasync)(fd);
}

int rename(const char* from, const char* to) {
  stall(from);
  note("rename", from, to);
  return REAL(rename)(from, to);
}

int nanosleep(const struct timespec* wanted, struct timespec* left) {
  const long ns = (wanted->tv_sec * 1000000000L + wanted->tv_nsec) / (setting(kReadPath) != NULL ? 10 : 1);
  const struct timespec pause = {ns / 1000000000L, ns % 1000000000L};
  return REAL(nanosleep)(&pause, left);
}
