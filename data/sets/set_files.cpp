// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for the files of a data set.
#include "data/sets/set_files.hpp"

#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/set_loading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// A disk that fails, or what this user may not look at, must not pass for a missing file.
bool is_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error && status.type() != fs::file_type::not_found)
    throw IoError(fmt::format("{}: cannot be examined: {}", path.string(), error.message()));
  return fs::is_regular_file(status);
}

/// The plain file, the .gz beside it, or an empty path.
fs::path find_file(const fs::path& directory, const std::string& name) {
  fs::path plain = directory / name;
  fs::path packed = directory / (name + ".gz");
  if (is_file(plain)) return plain;
  return is_file(packed) ? packed : fs::path();
}

constexpr const char* kNoDirectory = "no such directory";

/// The reason why a directory is unusable, for a message. Empty if it holds all files, which are then in `files`.
/// @throws IoError  it may hold them
std::string look_into(const SetEntry& set, const fs::path& directory, const std::vector<FileNames>& wanted,
                      SetFiles& files) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found) return kNoDirectory;
  if (error) throw IoError("cannot be examined: " + error.message());
  if (!fs::is_directory(status)) return "not a directory";
  files.directory = directory;
  std::vector<std::string> lacks;
  for (const FileNames& names : wanted) {
    files.files.push_back(find_one_of(directory, names));
    if (files.files.back().empty()) lacks.push_back(names.front());
  }
  if (lacks.empty()) return "";
  if (lacks.size() < wanted.size()) return fmt::format("lacks {}", fmt::join(lacks, " and "));
  if (set.pickles.empty() || !is_file(directory / set.pickles)) return "none of its files";
  return "holds the version for Python: pickles, which are not read; docs/data.md has lines that convert "
         "them";
}

std::vector<fs::path> places_by_name(const std::string& set, const std::string& root) {
  if (root != "auto") return {fs::path(root) / set, fs::path(root)};
  std::vector<fs::path> places;
  if (const std::string data = environment_variable("LOCKSTEP_DATA"); !data.empty()) {
    places.push_back(fs::path(data) / set);
    places.emplace_back(data);
  }
  if (const fs::path cache = user_cache(); !cache.empty()) places.push_back(cache / set);
  places.push_back(fs::path("/usr/share/datasets") / set);
  return places;
}

/// One of the set's own folders in another place.
bool is_folder_of(const SetEntry& set, const fs::path& place) {
  return std::ranges::any_of(
      set.folders, [&](const std::string& folder) { return place.native().ends_with("/" + folder); });
}

std::string what_to_do(const SetEntry& set, const std::vector<fs::path>& places) {
  if (!set.is_known_by_name())
    return "name the directory that holds its files, or make a set for data.set=shards: lockstep convert "
           "PICTURES DIR";
  const std::string fetch = fmt::format("fetch it with: {} {}", script_command("get-data"), set.name);
  const auto own = std::ranges::find(places, fs::path(set.name), &fs::path::filename);
  const bool has_cache = std::ranges::find(places, fs::path(user_cache()) / set.name) != places.end();
  if (has_cache || own == places.end()) return fetch;  // it goes to the cache unless told otherwise
  return fmt::format("{} --root {}", fetch, shell_word(own->parent_path().string()));
}

}  // namespace

std::string user_cache() {
  const std::string xdg = environment_variable("XDG_CACHE_HOME"), home = environment_variable("HOME");
  if (fs::path(xdg).is_absolute()) return xdg + "/lockstep";  // the XDG specification: ignore a relative one
  return home.empty() ? "" : home + "/.cache/lockstep";
}

fs::path find_one_of(const fs::path& directory, const FileNames& names) {
  fs::path found;
  for (const std::string& name : names) {
    const fs::path here = find_file(directory, name);
    if (here.empty()) continue;
    if (!found.empty())
      throw DataError(fmt::format("{}: {} and {} are both there, and either may be meant; remove one",
                                  directory.string(), found.filename().string(), here.filename().string()));
    found = here;
  }
  return found;
}

std::vector<fs::path> candidate_places(const SetEntry& set, const std::string& root) {
  if (!set.is_known_by_name()) return root == "auto" ? std::vector<fs::path>() : std::vector{fs::path(root)};
  std::vector<fs::path> places;
  for (const fs::path& place : places_by_name(set.name, root)) {
    places.push_back(place);
    for (const std::string& folder : set.folders) places.push_back(place / folder);
  }
  return places;
}

SetFiles find_set_files(const SetEntry& set, const std::vector<FileNames>& wanted,
                        const std::vector<fs::path>& places) {
  std::vector<std::string> looked;
  bool is_all_known = true;
  for (const fs::path& place : places) {
    SetFiles files;
    std::string trouble;
    try {
      trouble = look_into(set, place, wanted, files);
    } catch (const IoError& error) {
      is_all_known = false;
      trouble = error.what();
    }
    if (trouble.empty()) {
      if (const fs::path names = place / set.names_file; is_file(names)) files.names = names;
      return files;
    }
    if (trouble == kNoDirectory && is_folder_of(set, place)) continue;
    std::error_code ignored;
    looked.push_back(fmt::format("{} ({})", fs::absolute(place, ignored).string(), trouble));
  }
  if (!is_all_known)
    throw IoError(
        fmt::format("data set '{}' was not found, and not all of its places can be read: {}; check "
                    "the disk, and this user's permissions",
                    set.name, fmt::join(looked, ", ")));
  throw MissingDataError(fmt::format("data set '{}' is not on this machine; looked in {}; {}", set.name,
                                     fmt::join(looked, ", "), what_to_do(set, places)));
}

// Folders of people's own.

void fail_to_read(const fs::path& path, const std::error_code& error) {
  throw IoError(fmt::format("{}: cannot be read: {}; check its permissions", path.string(), error.message()));
}

bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') || name == "__MACOSX";
}

std::vector<fs::path> entries_of(const fs::path& folder, std::vector<fs::path>* hidden) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_hidden(*it))
      entries.push_back(it->path());
    else if (hidden != nullptr)
      hidden->push_back(it->path());
  }
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    throw MissingDataError(
        fmt::format("{}: no such folder; name one that holds a folder for each class", folder.string()));
  if (error) fail_to_read(folder, error);
  std::ranges::sort(entries, {}, &fs::path::native);
  if (hidden != nullptr) std::ranges::sort(*hidden, {}, &fs::path::native);
  return entries;
}

}  // namespace lockstep
