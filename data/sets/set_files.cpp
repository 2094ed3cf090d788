// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for the files of a data set.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// An environment variable, empty if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see resolve_data_root
  return value != nullptr ? value : "";
}

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

}  // namespace

std::string user_cache() {
  const std::string xdg = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (fs::path(xdg).is_absolute()) return xdg + "/lockstep";  // the XDG specification: ignore a relative one
  return home.empty() ? "" : home + "/.cache/lockstep";
}

fs::path find_one_of(const fs::path& directory, const FileNames& names) {
  fs::path found;
  for (const std::string& name : names) {
    const fs::path here = find_file(directory, name);
    if (here.empty()) continue;
    if (!found.empty()) {
      throw DataError(fmt::format("{}: {} and {} are both there, and either may be meant; remove one",
                                  directory.string(), found.filename().string(), here.filename().string()));
    }
    found = here;
  }
  return found;
}

namespace {

constexpr const char* kNoDirectory = "no such directory";

/// The reason why a directory is unusable, for a message. Empty if it holds all files, which are then in `files`.
/// @throws IoError  it may hold them
std::string look_into(const fs::path& directory, const std::vector<FileNames>& wanted, SetFiles& files) {
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
  if (lacks.size() == wanted.size()) return "none of its files";
  return fmt::format("lacks {}", fmt::join(lacks, " and "));
}

std::vector<fs::path> places_by_name(const std::string& set, const std::string& root) {
  if (root != "auto") return {fs::path(root) / set, fs::path(root)};
  std::vector<fs::path> places;
  if (const std::string data = variable("LOCKSTEP_DATA"); !data.empty()) {
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

std::string what_to_do(const SetEntry& set) {
  if (!set.is_known_by_name())
    return "name the directory that holds its files, or make a set for data.set=shards: lockstep convert "
           "PICTURES DIR";
  return fmt::format("fetch it with: {} {}", script_command("get-data"), set.name);
}

}  // namespace

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
      trouble = look_into(place, wanted, files);
    } catch (const IoError& error) {
      is_all_known = false;
      trouble = error.what();
    }
    if (!trouble.empty()) {
      if (trouble == kNoDirectory && is_folder_of(set, place)) continue;
      std::error_code ignored;
      looked.push_back(fmt::format("{} ({})", fs::absolute(place, ignored).string(), trouble));
      continue;
    }
    if (const fs::path names = place / set.names_file; is_file(names)) files.names = names;
    return files;
  }
  if (!is_all_known)
    throw IoError(
        fmt::format("data set '{}' was not found, and not all of its places can be read: {}; check "
                    "the disk, and this user's permissions",
                    set.name, fmt::join(looked, ", ")));
  throw MissingDataError(fmt::format("data set '{}' is not on this machine; looked in {}; {}", set.name,
                                     fmt::join(looked, ", "), what_to_do(set)));
}

// SetDirectory: files get names that no reader looks for, and their own once all are there.

namespace {

constexpr const char* kLock = ".convert.lock";
constexpr const char* kPartial = ".partial";

/// Every name that a file of a set in IDX files may have.
std::vector<std::string> idx_names() {
  const SetEntry& own = own_set();
  std::vector<std::string> names = {own.names_file, kConversionFile, sample_names_file("train"),
                                    sample_names_file("t10k"),
                                    sample_names_file(name_of(SetHalf::kValidation))};
  auto files = idx_set_files(own);
  for (const FileNames& of_validation : idx_validation_files()) files.push_back(of_validation);
  for (const FileNames& of_file : files) {
    for (const std::string& name : of_file) {
      names.push_back(name);
      names.push_back(name + ".gz");
    }
  }
  return names;
}

/// The entries of a directory that are called like files of a set, and then `ending`. The next reader must find the
/// new ones only. What says that there is a set of shards comes first, then images and labels, and classes.txt last: a set
/// that is being removed is none at once.
std::vector<std::string> set_entries(Env& env, const std::string& path, std::string_view ending) {
  const std::vector<std::string> idx = idx_names();
  std::vector<std::string> names;
  std::vector<std::string> entries = env.list(path);
  std::ranges::reverse(entries);
  for (const std::string& entry : entries) {
    if (!entry.ends_with(ending)) continue;
    const std::string name = entry.substr(0, entry.size() - ending.size());
    if (!is_name_in_shards(name) && std::ranges::find(idx, name) == idx.end()) continue;
    names.insert(name == kShardIndexFile ? names.begin() : names.end(), entry);
  }
  return names;
}

void make_directories(Env& env, const std::string& path) {
  const std::string parent = parent_directory(path);
  if (parent != path && !env.exists(parent)) make_directories(env, parent);
  if (env.exists(path) && !std::filesystem::is_directory(path))
    throw UsageError(fmt::format("{}: is not a directory; name one for the new set", path));
  env.make_directory(path);
}

}  // namespace

SetDirectory::SetDirectory(Env& env, std::string path, bool replace)
    : env_(env), path_(std::move(path)), replace_(replace) {
  make_directories(env_, path_);
  require_free_names();
  claim_ = env_.claim(in_directory(kLock));
  if (claim_ == nullptr)
    throw IoError(fmt::format(
        "{}: another conversion is writing there; wait for it, or choose another directory", path_));
  for (const std::string& name : set_entries(env_, path_, kPartial)) env_.remove_file(in_directory(name));
}

SetDirectory::~SetDirectory() {
  remove_partial_files();
}

std::string SetDirectory::in_directory(const std::string& name) const {
  return (std::filesystem::path(path_) / name).string();
}

void SetDirectory::require_free_names() const {
  for (const std::string& name : set_entries(env_, path_, "")) {
    const std::string file = in_directory(name);
    const EntryKind kind = env_.entry(file).kind;
    if (kind == EntryKind::kNothing || (kind == EntryKind::kFile && replace_)) continue;
    throw UsageError(kind == EntryKind::kFile
                         ? fmt::format("{}: is there already; --force replaces the set", file)
                         : fmt::format("{}: is in the way, and no regular file; remove it yourself", file));
  }
}

std::string SetDirectory::add(const std::string& name) {
  added_.push_back(name);
  return in_directory(name + kPartial);
}

void SetDirectory::publish() {
  require_free_names();
  for (const std::string& name : set_entries(env_, path_, "")) env_.remove_file(in_directory(name));
  for (const std::string& name : added_) env_.rename(in_directory(name + kPartial), in_directory(name));
  added_.clear();
  env_.sync_directory(path_);
}

void SetDirectory::remove_partial_files() noexcept {
  try {
    for (const std::string& name : added_) env_.remove_file(in_directory(name + kPartial));
    env_.remove_file(in_directory(kLock));
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next conversion removes them
  }
}

}  // namespace lockstep
