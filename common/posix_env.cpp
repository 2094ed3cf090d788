// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The real file system: thin wrappers around system calls, each result checked.
#include "common/descriptor.hpp"
#include "common/env.hpp"
#include "common/error.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

const char* hint(int error, bool writes) {
  const bool is_forbidden = error == EACCES || error == EPERM;
  if (is_forbidden && !writes) return "; this user must be allowed to read it";
  if (is_forbidden || error == EROFS) return "; choose a directory that this user may write to";
  if (error == ENOSPC || error == EDQUOT) return "; free some space or choose another directory";
  if (error == EFBIG) return "; raise the limit on the size of files (ulimit -f)";
  if (error == EMFILE || error == ENFILE) return "; raise the limit on open files (ulimit -n)";
  return "";
}

std::string failure(const std::string& path, const char* action, int error, bool writes) {
  return fmt::format("{}: cannot {}: {}{}", path, action, std::generic_category().message(error),
                     hint(error, writes));
}

/// Reading: only a name that is not there is missing; anything else may pass.
[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  const std::string text = failure(path, action, error, /*writes=*/false);
  if (error == ENOENT || error == ENOTDIR) throw MissingDataError(text);
  throw IoError(text);
}

/// Writing: a file that vanished then is an I/O error, not missing input.
[[noreturn]] void fail_io(const std::string& path, const char* action, int error) {
  throw IoError(failure(path, action, error, /*writes=*/true));
}

/// Calls again while a signal interrupts the call.
auto retry(const auto& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

Descriptor open_or_fail(const std::string& path, int flags, const char* action) {
  Descriptor fd(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  if (fd < 0 && (flags & O_CREAT) != 0) fail_io(path, action, errno);
  if (fd < 0) fail(path, action, errno);
  return fd;
}

class PosixFile : public WritableFile {
 public:
  PosixFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  void write(std::span<const std::byte> bytes) override {
    if (const int error = write_all(fd_, bytes); error != 0) fail_io(path_, "write", error);
  }

  void sync() override {
    if (retry([&] { return ::fsync(fd_); }) != 0) fail_io(path_, "fsync", errno);
  }

  void close() override {
    // Not retried: on Linux the descriptor is gone even after EINTR, which is no error then.
    if (::close(fd_.release()) != 0 && errno != EINTR) fail_io(path_, "close", errno);
  }

 private:
  std::string path_;
  Descriptor fd_;
};

class PosixClaim : public FileClaim {
 public:
  PosixClaim(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  void write(const std::string& text) override {
    const auto size = static_cast<ssize_t>(text.size());
    if (::ftruncate(fd_, 0) != 0) fail_io(path_, "truncate", errno);
    const ssize_t written = retry([&] { return ::pwrite(fd_, text.data(), text.size(), 0); });
    if (written != size) fail_io(path_, "write", written < 0 ? errno : ENOSPC);
  }

  /// The descriptor keeps the file, so that no other can be given its number.
  bool has_its_name() override {
    struct stat mine {
    }, named{};
    if (::fstat(fd_, &mine) != 0) fail(path_, "stat", errno);
    if (::lstat(path_.c_str(), &named) == 0)
      return mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
    if (errno != ENOENT && errno != ENOTDIR) fail(path_, "stat", errno);
    return false;
  }

 private:
  std::string path_;
  Descriptor fd_;  // flock() goes with the open file; closing it, or dying, gives it up
};

class PosixEnv : public Env {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    return std::make_unique<PosixFile>(path,
                                       open_or_fail(path, O_WRONLY | O_CREAT | O_EXCL, "create the file"));
  }

  std::vector<std::byte> read_part(const std::string& path, std::uint64_t most, bool at_end) override {
    const Descriptor fd = open_or_fail(path, O_RDONLY | O_NONBLOCK, "open");  // a FIFO must not hang us
    const std::uint64_t size = size_of(fd, path);
    std::vector<std::byte> bytes(std::min(size, most));
    if (at_end && ::lseek(fd, static_cast<off_t>(size - bytes.size()), SEEK_SET) < 0)
      fail(path, "seek", errno);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = retry([&] { return ::read(fd, bytes.data() + done, bytes.size() - done); });
      if (got < 0) fail(path, "read", errno);
      if (got == 0) throw IoError(fmt::format("{}: became shorter while it was read", path));
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }

  std::uint64_t size(const std::string& path) override {
    return size_of(open_or_fail(path, O_RDONLY | O_NONBLOCK, "open"), path);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_io(from, ("rename to " + to).c_str(), errno);
  }

  void sync_directory(const std::string& path) override {
    const Descriptor fd = open_or_fail(path, O_RDONLY | O_DIRECTORY, "open the directory");
    const int result = retry([&] { return ::fsync(fd); });
    // Some network file systems cannot sync a directory, and need not.
    if (result != 0 && errno != EINVAL && errno != ENOTSUP) fail_io(path, "fsync the directory", errno);
  }

  void make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return;
    const int error = errno;
    struct stat info {};
    if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return;
    fail_io(path, "create the directory", error);
  }

  std::vector<std::string> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    if (directory == nullptr) fail(path, "list the directory", errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;  // by which the end is told from an error
    }
    if (errno != 0) fail(path, "list the directory", errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  bool exists(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR) fail(path, "stat", errno);
    return false;
  }

  void remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_io(path, "remove", errno);
  }

  Entry entry(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) fail(path, "stat", errno);
      return {};
    }
    const auto kind = S_ISREG(info.st_mode)   ? EntryKind::kFile
                      : S_ISDIR(info.st_mode) ? EntryKind::kDirectory
                      : S_ISLNK(info.st_mode) ? EntryKind::kLink
                                              : EntryKind::kOther;
    return {kind, static_cast<std::uint64_t>(info.st_nlink)};
  }

  bool remove_directory(const std::string& path, std::span<const std::string> files) override {
    if (entry(path).kind == EntryKind::kLink) {
      remove_file(path);
      return true;
    }
    const Descriptor directory(
        retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (directory < 0 && errno == ENOENT) return true;
    if (directory < 0 && (errno == ENOTDIR || errno == ELOOP)) return false;
    if (directory < 0) fail_io(path, "open the directory", errno);
    for (const std::string& name : files) {
      const int removed = ::unlinkat(directory, name.c_str(), 0);
      // A directory of that name is none of ours (POSIX says EPERM, Linux EISDIR).
      if (removed != 0 && errno != ENOENT && errno != EISDIR)
        fail_io(fmt::format("{}/{}", path, name), "remove", errno);
    }
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
      fail_io(path, "remove the directory", errno);
    return false;
  }

  std::unique_ptr<FileClaim> claim(const std::string& path) override {
    require_own(*this, path, EntryKind::kFile);  // the owner is written into it
    Descriptor fd = open_or_fail(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, "open the lock file");
    size_of(fd, path);  // a FIFO or a device put there meanwhile
    if (retry([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      const bool no_locks_here = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
      if (!no_locks_here) fail_io(path, "lock", errno);
    }
    return std::make_unique<PosixClaim>(path, std::move(fd));
  }

  void pause(std::chrono::milliseconds duration) override { std::this_thread::sleep_for(duration); }

 private:
  static std::uint64_t size_of(const Descriptor& fd, const std::string& path) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) fail(path, "stat", errno);
    if (!S_ISREG(info.st_mode)) throw DataError(fmt::format("{}: is not a regular file", path));
    return static_cast<std::uint64_t>(info.st_size);
  }
};

}  // namespace

int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

Env& Env::posix() {
  static PosixEnv env;
  return env;
}

}  // namespace lockstep
