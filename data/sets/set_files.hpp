// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the files of a data set lie on this machine.
#pragma once

#include "common/env.hpp"
#include "data/sets/catalogue.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

/// The names that a file may have, without .gz; the first is the one in messages.
using FileNames = std::vector<std::string>;

/// The files of a set, as found: plain or with .gz.
struct SetFiles {
  std::filesystem::path directory;
  std::vector<std::filesystem::path> files;  ///< in the order in which they were asked for
  std::filesystem::path names;               ///< SetEntry::names_file; empty: it is not there
};

/// The directories that may hold a set, best first. A given root: ROOT/SET, ROOT. `auto`: $LOCKSTEP_DATA/SET,
/// $LOCKSTEP_DATA, ${XDG_CACHE_HOME:-~/.cache}/lockstep/SET, /usr/share/datasets/SET; without the ones whose
/// variable is not set. Behind each comes the folder in it that the set's archive unpacks to. People's own
/// data have no name to look for: they are in ROOT itself. Reads the environment when root is `auto`.
std::vector<std::filesystem::path> candidate_places(const SetEntry& set, const std::string& root);

/// The first place that holds all of these files; a plain file is preferred to a .gz beside it.
/// @throws MissingDataError  names every place with what it lacks, and what to do about it
/// @throws DataError         a file is there under two of its names
SetFiles find_set_files(const SetEntry& set, const std::vector<FileNames>& wanted,
                        const std::vector<std::filesystem::path>& places);

/// The file in a directory under any of these names, plain or with .gz; empty: it is not there.
/// @throws DataError  it is there under two of them
std::filesystem::path find_one_of(const std::filesystem::path& directory, const FileNames& names);

// A directory that gets the files of a new set, in IDX files or in shards: all of them or none.

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
  SetDirectory(const SetDirectory&) = delete;
  SetDirectory& operator=(const SetDirectory&) = delete;

  /// The path under which a file of the set is to be created now; publish gives it its name.
  std::string add(const std::string& name);
  /// Puts the new files in the place of all old ones, of either format. They get their names in the order in which they
  /// were added.
  void publish();

 private:
  std::string in_directory(const std::string& name) const;
  void require_free_names() const;
  void remove_partial_files() noexcept;

  Env& env_;
  std::string path_;
  bool replace_;
  std::unique_ptr<FileClaim> claim_;
  std::vector<std::string> added_;
};

}  // namespace lockstep
