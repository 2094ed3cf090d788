// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the files of a data set lie on this machine.
#pragma once

#include "data/catalogue.hpp"

#include <filesystem>
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

}  // namespace lockstep
