// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The real file system: thin wrappers around system calls, each result checked.
#include "kernels/runtime/error.hpp"
#include "trainer/checkpoint/env.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

std::string hint(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another run.dir";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a run.dir that this user may write to";
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    default:
      return "";
  }
}

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  const std::string text =
      fmt::format("{}: cannot {}: {}{}", path, action, std::generic_category().message(error), hint(error));
  if (error == ENOENT) throw MissingDataError(text);
  throw IoError(text);
}

/// Like fail(), for writing: a file that vanished then is an I/O error, not missing input.
[[noreturn]] void fail_io(const std::string& path, const char* action, int error) {
  throw IoError(
      fmt::format("{}: cannot {}: {}{}", path, action, std::generic_category().message(error), hint(error)));
}

/// Calls again while a signal interrupts the call.
template <typename Call>
auto retry(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Descriptor open_or_fail(const std::string& path, int flags, const char* action) {
  const int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd < 0 && (flags & O_CREAT) != 0) fail_io(path, action, errno);
  if (fd < 0) fail(path, action, errno);
  return Descriptor(fd);
}

class PosixFile : public WritableFile {
 public:
  PosixFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = retry([&] { return ::write(fd_.get(), bytes.data(), bytes.size()); });
      if (written < 0) fail_io(path_, "write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void sync() override {
    if (retry([&] { return ::fsync(fd_.get()); }) != 0) fail_io(path_, "fsync", errno);
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
    if (::ftruncate(fd_.get(), 0) != 0) fail_io(path_, "truncate", errno);
    const ssize_t written = retry([&] { return ::pwrite(fd_.get(), text.data(), text.size(), 0); });
    if (written != size) fail_io(path_, "write", written < 0 ? errno : ENOSPC);
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

  std::vector<std::byte> read(const std::string& path) override {
    const Descriptor fd = open_or_fail(path, O_RDONLY | O_NONBLOCK, "open");  // a FIFO must not hang us
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) fail(path, "stat", errno);
    if (!S_ISREG(info.st_mode)) throw IoError(fmt::format("{}: is not a regular file", path));
    std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = retry([&] { return ::read(fd.get(), bytes.data() + done, bytes.size() - done); });
      if (got < 0) fail(path, "read", errno);
      if (got == 0) throw IoError(fmt::format("{}: became shorter while it was read", path));
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_io(from, ("rename to " + to).c_str(), errno);
  }

  void sync_directory(const std::string& path) override {
    const Descriptor fd = open_or_fail(path, O_RDONLY | O_DIRECTORY, "open the directory");
    const int result = retry([&] { return ::fsync(fd.get()); });
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
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) fail(path, "list the directory", errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    const int error = errno;
    ::closedir(directory);
    if (error != 0) fail(path, "list the directory", error);
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

  void remove_directory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0 && errno != ENOENT) fail_io(path, "remove the directory", errno);
  }

  std::unique_ptr<FileClaim> claim(const std::string& path) override {
    Descriptor fd = open_or_fail(path, O_RDWR | O_CREAT, "open the lock file");
    if (retry([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      const bool no_locks_here = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
      if (!no_locks_here) fail_io(path, "lock", errno);
    }
    return std::make_unique<PosixClaim>(path, std::move(fd));
  }
};

}  // namespace

Env& Env::posix() {
  static PosixEnv env;
  return env;
}

}  // namespace lockstep
