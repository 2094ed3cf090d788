// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The seam through which everything that must survive a crash reaches the file system. Tests replace it by
/// one that fails, fills up, or forgets what was not synced.
#pragma once

#include "common/descriptor.hpp"
#include "common/error.hpp"

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep {

/// Bytes of a file as text. Borrowed.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The number that all of a text is, in digits of `base` if one is given; nothing: it is none.
template <typename Number>
std::optional<Number> parse_whole(std::string_view text, auto... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// A new file that is being written. Destroying one closes it without a word: call close() to learn whether
/// it worked.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Appends all of the bytes. @throws IoError, also when the disk is full; part of them may be in the file
  /// then
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Returns when the contents will survive a power loss. @throws IoError
  virtual void sync() = 0;
  /// @throws IoError if the system reports a late write error
  virtual void close() = 0;
};

/// An exclusive claim on a file. Ends when destroyed, or when the process dies, however it dies. The file
/// stays.
class FileClaim {
 public:
  virtual ~FileClaim() = default;
  /// Overwrites the file in place, so that the claim stays on it. @throws IoError
  virtual void write(const std::string& text) = 0;
  /// True while the claimed file still has its name. False once it, or the directory that it lies in, was removed,
  /// renamed or replaced. @throws IoError
  virtual bool has_its_name() = 0;
};

/// Kind of the thing with a name: symbolic links are not followed.
enum class EntryKind { kNothing, kFile, kDirectory, kLink, kOther };

struct Entry {
  EntryKind kind = EntryKind::kNothing;
  std::uint64_t names = 0;  ///< hard links of a file
};

/// Every method throws IoError with path, system error and hint, unless it says otherwise. Safe to call from
/// several threads at once.
class Env {
 public:
  virtual ~Env() = default;

  /// Creates an empty file that must not exist yet.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  /// The whole of a regular file; its size is known before memory is asked for. A FIFO or device is not
  /// waited for.
  /// @throws MissingDataError if it is not there; DataError if it is not a regular file
  std::vector<std::byte> read(const std::string& path) { return read_first(path, UINT64_MAX); }
  /// Its first or last bytes: `most`, or all where there are fewer. So memory is bounded for a file of any size.
  /// @throws as read
  std::vector<std::byte> read_first(const std::string& path, std::uint64_t most) {
    return read_part(path, most, false);
  }
  std::vector<std::byte> read_last(const std::string& path, std::uint64_t most) {
    return read_part(path, most, true);
  }
  virtual std::vector<std::byte> read_part(const std::string& path, std::uint64_t most, bool at_end) = 0;
  /// Bytes of a file. @throws as read
  virtual std::uint64_t size(const std::string& path) = 0;
  /// Atomic within a file system. Replaces a file or an empty directory.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Makes creations, renames and removals of entries of this directory survive a power loss.
  virtual void sync_directory(const std::string& path) = 0;
  /// Creates one level; a directory that is already there is fine.
  virtual void make_directory(const std::string& path) = 0;
  /// Names of the entries, sorted, without "." and "..". @throws MissingDataError if there is no such
  /// directory
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// True if there is something at the end of the path, symbolic links followed.
  virtual bool exists(const std::string& path) = 0;
  /// Kind of the last part of the path; a symbolic link is not followed.
  virtual Entry entry(const std::string& path) = 0;
  /// Removes a file. One that is not there is fine.
  virtual void remove_file(const std::string& path) = 0;
  /// Removes those of the named files that are in a directory, and then the directory. Uses a handle of
  /// the directory, so it follows no symbolic link even if one is put there meanwhile: if `path` is one,
  /// the link itself goes. A file with other names stays, and the directory with it; so does a thing that is no
  /// directory. One that is not there is fine. @returns true if nothing is left
  virtual bool remove_directory(const std::string& path, std::span<const std::string> files) = 0;
  /// Claims a file, creating it if need be; null while another process, or another claim of this one, holds
  /// it. @throws IoError also if the name is a symbolic link, or the file has other names: it may be
  /// another program's
  virtual std::unique_ptr<FileClaim> claim(const std::string& path) = 0;
  /// Between two attempts.
  virtual void pause(std::chrono::milliseconds duration) = 0;

  /// The real file system.
  static Env& posix();
};

/// Writes, syncs and closes a new file.
void write_synced(Env& env, const std::string& path, std::span<const std::byte> bytes);
/// As write_synced, of pieces that lie in several places.
void write_pieces_synced(Env& env, const std::string& path,
                         std::span<const std::span<const std::byte>> pieces);
/// Writes `path` in one step: under `path`.tmp, synced, renamed, directory synced. Readers see the old or the
/// new file.
void replace_file(Env& env, const std::string& path, std::span<const std::byte> bytes);
inline void replace_file(Env& env, const std::string& path, std::string_view text) {
  replace_file(env, path, std::as_bytes(std::span(text)));
}
/// Calls `read`, which only reads, again while it throws IoError. Such an error (a network file system that
/// hiccups, no free file descriptor) may pass. Three times with growing pauses, half a second in all; then
/// the error leaves.
auto read_patiently(Env& env, const auto& read) {
  for (const int pause : {20, 100, 400}) {
    try {
      return read();
    } catch (const IoError&) {
      env.pause(std::chrono::milliseconds(pause));
    }
  }
  return read();
}

/// Result of `read`, or `otherwise` where it throws an Error: a link to itself, a folder of others.
auto or_if_unreadable(const auto& read, decltype(read()) otherwise) {
  try {
    return read();
  } catch (const Error&) {
    return otherwise;
  }
}

/// Checks something that a run writes into, and that must lie in its directory. Throws IoError if `path` is a symbolic
/// link, no file of that kind, or a file that has another name elsewhere. It may be missing.
void require_own(Env& env, const std::string& path, EntryKind kind);
/// Replaces a file that also has a name elsewhere (a copy made with `cp -l`) by one that has not. Calls
/// require_own then.
void make_own(Env& env, const std::string& path);

/// Makes a directory and all above it that are missing, so that their names survive a power loss.
/// @returns why it cannot be made; false: it is there
/// @throws IoError  a new name cannot be synced
std::error_code make_directory_and_parents(Env& env, const std::string& path);

/// The first of `path`, `path`.2, `path`.3, ... that nothing has.
std::string free_name(Env& env, const std::string& path, const char* separator = ".");

/// "a/b/c" → "a/b"; "c" → ".".
std::string parent_directory(const std::string& path);

// A file of a run that only grows: what is appended is in it whole or not at all.

/// If a full disk cuts a piece short, it is removed, kept in memory, and written before what comes next. A thread
/// writes: if a file system stalls (a server of NFS that is away, say), append() waits for a tenth of a second
/// once, and not again until it goes on.
class AppendFile {
 public:
  /// Opens for appending, creates it if need be. Not through a symbolic link, and without waiting for the reader
  /// of a FIFO.
  /// @param keep  the first bytes to keep of what is there; nothing: all
  /// @throws IoError
  explicit AppendFile(std::string path, std::optional<std::uint64_t> keep = std::nullopt);
  /// Waits until all has been tried.
  ~AppendFile();

  /// Waits without a limit only where 64 MiB are kept already.
  /// @throws IoError  if it is known that the bytes are not in the file yet
  void append(std::span<const std::byte> bytes);
  void append(const std::string& text) { append(std::as_bytes(std::span(text))); }
  /// Returns when everything will survive a power loss. May run on another thread than append.
  /// @throws IoError also if something could not be written
  void sync();
  /// True if everything that was appended is in the file, or under way.
  bool is_complete() const;

 private:
  struct Outcome {
    int error = 0;  ///< errno; 0: it is in the file
    const char* what = "written";
  };

  void write_what_comes();
  Outcome write_at_end(std::span<const std::byte> bytes) const;

  std::string path_;
  Descriptor fd_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte> unwritten_, in_work_;
  std::int64_t asked_ = 0, tried_ = 0;  ///< how often all that is unwritten was to be written
  Outcome last_;                        ///< result of the last try
  bool failed_ = false;                 ///< append() has said so, and nothing was written since
  bool stalls_ = false;                 ///< a try lasts longer than append() waits
  bool ends_ = false;
  std::thread writer_;
};

}  // namespace lockstep
