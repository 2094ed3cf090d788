// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one way in which commands write a file that a user has named: whole or not at all. It replaces nothing
/// but a regular file that may go.
#pragma once

#include "common/env.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lockstep {

/// Refuses to replace a directory, a device, a FIFO, a socket or a symbolic link. A regular
/// file may go only if `replace` is set. For work that runs long before there is something to write.
/// @throws UsageError that says what is in the way and what to do; IoError
void require_free_output(Env& env, const std::string& path, bool replace);

/// A file that gets its name when it is whole and synced. It is written beside it, as PATH.PID.partial.
class OutputFile {
 public:
  /// @throws as require_free_output; IoError  nothing can be created there
  OutputFile(Env& env, std::string path, bool replace);
  /// Removes what was not published.
  ~OutputFile();

  /// @throws IoError
  void write(std::span<const std::byte> bytes) { file_->write(bytes); }
  /// Gives the file its name. A file that appeared there since is treated as before.
  /// @throws as require_free_output; IoError
  void publish();

 private:
  Env& env_;
  std::string path_, unfinished_;  ///< the latter empty: there is none
  bool replace_;
  std::unique_ptr<WritableFile> file_;
};

/// All of it at once. @throws as OutputFile
void write_output_file(Env& env, const std::string& path, std::span<const std::byte> bytes, bool replace);

}  // namespace lockstep
