// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SetDirectory: files get names that no reader looks for, and their own once all are there.
#include "data/sets/set_directory.hpp"

#include "common/error.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

constexpr const char* kLock = ".convert.lock";
constexpr const char* kPartial = ".partial";

/// Every name that a file of a set in IDX files may have.
std::vector<std::string> idx_names() {
  const SetEntry& own = own_set();
  std::vector<std::string> names = {own.names_file, kConversionFile};
  auto files = idx_set_files(own);
  for (const FileNames& of_validation : idx_validation_files()) files.push_back(of_validation);
  for (const FileNames& of_file : files)
    for (const std::string& name : of_file) names.insert(names.end(), {name, name + ".gz"});
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

/// The names of new ones survive a power loss.
void make_directories(Env& env, const std::string& path) {
  const std::string parent = parent_directory(path);
  if (parent != path && !env.exists(parent)) make_directories(env, parent);
  const bool is_new = !env.exists(path);
  if (!is_new && !std::filesystem::is_directory(path))
    throw UsageError(fmt::format("{}: is not a directory; name one for the new set", path));
  env.make_directory(path);
  if (is_new) env.sync_directory(parent);
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
  try {
    for (const std::string& name : added_) env_.remove_file(in_directory(name + kPartial));
    env_.remove_file(in_directory(kLock));
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next conversion removes them
  }
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
  env_.sync_directory(path_);
}

}  // namespace lockstep
