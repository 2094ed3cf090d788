// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files installed beside the program: plugins that are loaded at their first use, and files that come with it.
#include "common/installed.hpp"

#include "common/error.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <sstream>
#include <system_error>

namespace lockstep {

// Finds shared objects beside the program, loads them once, and tells them how advice is spelt.

namespace {

/// Ranks may be threads.
struct LoadedPlugins {
  std::mutex mutex;
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> folders;  ///< that were added
};

LoadedPlugins& loaded() {
  static LoadedPlugins plugins;
  return plugins;
}

void remember(const std::filesystem::path& path, std::vector<std::filesystem::path>& in) {
  const std::lock_guard lock(loaded().mutex);
  if (std::find(in.begin(), in.end(), path) == in.end()) in.push_back(path);
}

/// True of a plugin that was built with this program.
bool is_built(const std::string& name) {
  std::istringstream plugins(LOCKSTEP_PLUGINS);
  return std::find(std::istream_iterator<std::string>(plugins), {}, name) !=
         std::istream_iterator<std::string>();
}

/// @throws DeviceError if no folder holds the file
std::filesystem::path find_plugin(const Plugin& plugin) {
  std::string looked_in;
  for (const auto& folder : plugin_folders()) {
    auto file = folder / (plugin.name + ".so");
    if (std::filesystem::exists(file)) return file;
    looked_in += (looked_in.empty() ? "" : " and ") + folder.string();
  }
  if (is_built(plugin.name)) {
    throw DeviceError(fmt::format(
        "{}.so, which this program was built with, is missing (looked in {}): put it there, install or build "
        "the program again (launch/build release lockstep_product), or {}",
        plugin.name, looked_in, plugin.otherwise));
  }
  throw DeviceError(
      fmt::format("this program was built without {}.so (looked in {}): install {}{} and build again, or {}",
                  plugin.name, looked_in, LOCKSTEP_TOOLKIT_AND, plugin.needs, plugin.otherwise));
}

/// dlerror() starts with the path of the file it is about: the plugin's would be there twice.
std::string last_loader_error(const std::filesystem::path& file) {
  const char* text = dlerror();
  std::string error = text != nullptr ? text : "unknown cause";
  const std::string own = file.string() + ": ";
  return error.starts_with(own) ? error.substr(own.size()) : error;
}

void* load(const Plugin& plugin, const std::filesystem::path& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) {
    remember(file, loaded().files);
    return handle;
  }
  throw DeviceError(
      fmt::format("cannot load {}: {}; install {} or add the folder that holds it to LD_LIBRARY_PATH, or {}",
                  file.string(), last_loader_error(file), plugin.needs, plugin.otherwise));
}

/// To a plugin that gives advice.
void hand_over_spelling(void* handle) {
  using Take = void(const Spelling&);
  if (void* const take = dlsym(handle, "lockstep_spell_advice_as")) reinterpret_cast<Take*>(take)(spelling());
}

}  // namespace

std::vector<std::filesystem::path> plugin_folders() {
  std::error_code unreadable;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const auto folder = unreadable ? std::filesystem::current_path(unreadable) : executable.parent_path();
  std::vector<std::filesystem::path> folders = {folder, (folder / "../lib/lockstep").lexically_normal()};
  const std::lock_guard lock(loaded().mutex);
  folders.insert(folders.end(), loaded().folders.begin(), loaded().folders.end());
  return folders;
}

void look_for_plugins_in(const std::filesystem::path& folder) {
  remember(folder, loaded().folders);
}

std::vector<std::filesystem::path> loaded_plugins() {
  const std::lock_guard lock(loaded().mutex);
  return loaded().files;
}

void* plugin_symbol(const Plugin& plugin, const std::string& symbol) {
  const auto file = find_plugin(plugin);
  void* const handle = load(plugin, file);
  hand_over_spelling(handle);
  void* const address = dlsym(handle, symbol.c_str());
  if (address != nullptr) return address;
  throw DeviceError(
      fmt::format("{} has no function '{}': it belongs to another version of the program; "
                  "build both again with launch/build, or {}",
                  file.string(), symbol, plugin.otherwise));
}

std::string script_command(const std::string& name) {
  std::error_code unknown;
  const std::string installed = "lockstep-" + name;
  std::vector<std::filesystem::path> folders = {
      std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path()};
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): it does not change
  std::istringstream list(path == nullptr ? "" : path);
  for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  const bool is_installed = std::ranges::any_of(
      folders, [&](const auto& folder) { return std::filesystem::exists(folder / installed, unknown); });
  return is_installed ? installed : "launch/" + name;
}

// shared_directories: beside the program first.

std::vector<std::filesystem::path> shared_directories(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> directories;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty())
    directories.push_back(program.parent_path().parent_path() / "share/lockstep" / folder.filename());
  directories.push_back(LOCKSTEP_SOURCE_DIR / folder);
  return directories;
}

}  // namespace lockstep
