// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// find_model: a name to a path, or a list of the names there are.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/yaml.hpp"
#include "models/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> model_directories() {
  std::vector<fs::path> directories;
  // The environment is read before any thread could change it.
  if (const char* given = std::getenv("LOCKSTEP_MODELS"); given != nullptr && *given != '\0') {  // NOLINT
    directories.emplace_back(given);
  }
  for (fs::path& directory : shared_directories("models", LOCKSTEP_MODELS_SOURCE_DIR))
    directories.push_back(std::move(directory));
  return directories;
}

std::set<std::string> names_in(const std::vector<fs::path>& directories) {
  std::set<std::string> names;
  for (const fs::path& directory : directories) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
    }
  }
  return names;
}

[[noreturn]] void fail_unknown(const std::string& name, const std::vector<fs::path>& directories) {
  const std::set<std::string> names = names_in(directories);
  std::vector<std::string> places;
  places.reserve(directories.size());
  for (const fs::path& directory : directories) places.push_back(directory.string());
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  throw ConfigError(
      fmt::format("model {}: there is no such model{}; known: {}; looked in {}; for a file of your own "
                  "give its path, such as ./{}.yaml",
                  quoted_text(name), did_you_mean(name, candidates), fmt::join(names, ", "),
                  fmt::join(places, ", "), name.empty() ? "my_net" : name));
}

}  // namespace

std::vector<std::string> known_models() {
  const std::set<std::string> names = names_in(model_directories());
  return {names.begin(), names.end()};
}

std::string find_model(const std::string& source) {
  if (is_model_path(source)) return source;
  const std::vector<fs::path> directories = model_directories();
  for (const fs::path& directory : directories) {
    const fs::path file = directory / (source + ".yaml");
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file.string();
  }
  fail_unknown(source, directories);
}

}  // namespace lockstep
