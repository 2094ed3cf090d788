// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A directory that gets the files of a new set, in IDX files or in shards. It gets all of them or none.
#pragma once

#include "common/env.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

class SetDirectory {
 public:
  /// Makes the directory if need be, and claims it.
  /// @param replace  whether a set that is in there may go
  /// @throws UsageError  there are files of a set, and they may not go; or things of their names that are no
  /// files
  /// @throws IoError     it cannot be made or written, or another process is at work in it
  SetDirectory(Env& env, std::string path, bool replace);
  /// Removes what was not published.
  ~SetDirectory();

  /// The path under which a file of the set is to be created now; publish gives it its name.
  std::string add(const std::string& name);
  /// Puts the new files in the place of all old ones, of either format. They get their names in the order in which they
  /// were added.
  void publish();

 private:
  std::string in_directory(const std::string& name) const;
  void require_free_names() const;

  Env& env_;
  std::string path_;
  bool replace_;
  std::unique_ptr<FileClaim> claim_;
  std::vector<std::string> added_;
};

}  // namespace lockstep
