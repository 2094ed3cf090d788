// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Homes by $HOME for oneself, by the user database for others.
#include "trainer/config/home_path.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep {
namespace {

// Job files are read before there are threads.
// NOLINTBEGIN(concurrency-mt-unsafe)
std::optional<std::string> home_of(const std::string& user) {
  if (const char* home = std::getenv("HOME"); user.empty() && home != nullptr && *home != '\0') return home;
  const passwd* entry = user.empty() ? getpwuid(geteuid()) : getpwnam(user.c_str());
  if (entry == nullptr || entry->pw_dir == nullptr || *entry->pw_dir == '\0') return std::nullopt;
  return entry->pw_dir;
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

std::optional<std::string> expand_home(const std::string& path) {
  if (path.empty() || path.front() != '~') return path;
  const std::size_t slash = path.find('/');
  const auto home = home_of(path.substr(1, slash == path.npos ? path.npos : slash - 1));
  if (!home) return std::nullopt;
  return slash == path.npos ? *home : *home + path.substr(slash);
}

}  // namespace lockstep
