// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files of a data set, and their places on this machine.
#pragma once

#include "data/sets/catalogue.hpp"

#include <filesystem>
#include <string>
#include <system_error>
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
/// variable is not set. Behind each come SetEntry::folders in it. People's own data have no name to look for: they are
/// in ROOT itself. Reads the environment when root is `auto`.
std::vector<std::filesystem::path> candidate_places(const SetEntry& set, const std::string& root);

/// The first place that holds all of these files; a plain file is preferred to a .gz beside it.
/// @throws MissingDataError  names the places with what they lack, and what to do about it; folders of theirs that are not
///                           there go unnamed
/// @throws IoError           there is none, and a place that may be one cannot be examined
/// @throws DataError         a file is there under two of its names
SetFiles find_set_files(const SetEntry& set, const std::vector<FileNames>& wanted,
                        const std::vector<std::filesystem::path>& places);

/// The file in a directory under any of these names, plain or with .gz; empty: it is not there.
/// @throws DataError  it is there under two of them
std::filesystem::path find_one_of(const std::filesystem::path& directory, const FileNames& names);

// Folders of people's own, in which files have any names.

/// @throws IoError
[[noreturn]] void fail_to_read(const std::filesystem::path& path, const std::error_code& error);

/// True of what is not a person's: it begins with a dot, or macOS puts it into archives.
bool is_hidden(const std::filesystem::path& path);

/// The entries of a folder, sorted by their bytes. @param hidden  takes those that are hidden; null: they are dropped
/// @throws MissingDataError, IoError
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder,
                                              std::vector<std::filesystem::path>* hidden = nullptr);

}  // namespace lockstep
