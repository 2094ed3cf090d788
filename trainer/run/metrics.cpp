// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lines that could not be written whole are taken back and kept for the next write.
#include "trainer/run/metrics.hpp"

#include "common/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  const char* hint = error == ENOSPC ? "; free some space or choose another run.dir" : "";
  throw IoError(fmt::format("{}: cannot be {}: {}{}", path, what, std::strerror(error), hint));
}

/// Not through a symbolic link, and without waiting for the reader of a FIFO.
constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

/// 0, or the errno of the write that failed; part of the text may be in the file then.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

class MetricsWriter::File {
 public:
  explicit File(std::string path) : path_(std::move(path)), fd_(::open(path_.c_str(), kFlags, 0666)) {
    if (fd_ < 0) fail(path_, "opened for writing", errno);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void append(const std::string& line) {
    const std::lock_guard lock(mutex_);
    unwritten_ += line;
    const off_t size = ::lseek(fd_, 0, SEEK_END);
    write_error_ = write_all(fd_, unwritten_);
    if (write_error_ != 0) {
      take_back(size);
      fail(path_, "written", write_error_);
    }
    unwritten_.clear();
  }

  void sync() {
    const std::lock_guard lock(mutex_);
    if (!unwritten_.empty()) fail(path_, "written", write_error_);
    if (::fdatasync(fd_) != 0) fail(path_, "synced", errno);
  }

  bool is_complete() const {
    const std::lock_guard lock(mutex_);
    return unwritten_.empty();
  }

 private:
  /// Half a line would stand before the next whole one.
  void take_back(off_t size) const {
    if (size >= 0 && ::ftruncate(fd_, size) != 0) fail(path_, "cut back to whole lines", errno);
  }

  std::string path_;
  int fd_;
  mutable std::mutex mutex_;
  std::string unwritten_;  ///< whole lines
  int write_error_ = 0;    ///< why they are not written
};

MetricsWriter::MetricsWriter() = default;
MetricsWriter::MetricsWriter(const std::string& path) : file_(std::make_unique<File>(path)) {}
MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  if (file_)
    file_->append(event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void MetricsWriter::sync() {
  if (file_) file_->sync();
}

bool MetricsWriter::is_complete() const {
  return !file_ || file_->is_complete();
}

}  // namespace lockstep
