// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SetDirectory: files get names that no reader looks for, and their own once all are there.
#include "data/set_directory.hpp"

#include "common/error.hpp"
#include "data/catalogue.hpp"
#include "data/idx_set.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace lockstep {
namespace {

constexpr const char* kLock = ".convert.lock";
constexpr const char* kPartial = ".partial";

/// Every name that a file of such a set may have: the next reader must find the new ones only.
std::vector<std::string> all_names() {
  const SetEntry& own = own_set();
  std::vector<std::string> names = {own.names_file};
  for (const FileNames& of_file : idx_set_files(own)) {
    for (const std::string& name : of_file) {
      names.push_back(name);
      names.push_back(name + ".gz");
    }
  }
  return names;
}

void make_directories(Env& env, const std::string& path) {
  const std::string parent = parent_directory(path);
  if (parent != path && !env.exists(parent)) make_directories(env, parent);
  if (env.exists(path) && !std::filesystem::is_directory(path))
    throw UsageError(fmt::format("{}: is no directory; name one for the new set", path));
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
  for (const std::string& name : all_names()) env_.remove_file(in_directory(name + kPartial));
}

SetDirectory::~SetDirectory() {
  remove_partial_files();
}

std::string SetDirectory::in_directory(const std::string& name) const {
  return (std::filesystem::path(path_) / name).string();
}

void SetDirectory::require_free_names() const {
  for (const std::string& name : all_names()) {
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
  for (const std::string& name : all_names()) env_.remove_file(in_directory(name));
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
