// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files installed beside the program: plugins that are loaded at their first use, and files that come with it.
#include "common/installed.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <string_view>
#include <system_error>

namespace lockstep {

// Finds shared objects beside the program, loads them once, and tells them how advice is spelt.

namespace {

std::mutex plugins_mutex;  ///< Ranks may be threads.
std::vector<std::filesystem::path> loaded_files, added_folders;

void remember(const std::filesystem::path& path, std::vector<std::filesystem::path>& in) {
  const std::lock_guard lock(plugins_mutex);
  if (std::ranges::find(in, path) == in.end()) in.push_back(path);
}

/// Folder of the running executable; if the system does not say: the root, where no stranger puts files.
std::filesystem::path program_folder() {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? "/" : program.parent_path();
}

/// True of a plugin that was built with this program.
bool is_built(const std::string& name) {
  return std::string_view(" " LOCKSTEP_PLUGINS " ").find(" " + name + " ") != std::string_view::npos;
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
  const std::string error = dlerror();
  const std::string own = file.string() + ": ";
  return error.starts_with(own) ? error.substr(own.size()) : error;
}

}  // namespace

std::vector<std::filesystem::path> plugin_folders() {
  const auto folder = program_folder();
  std::vector<std::filesystem::path> folders = {folder, (folder / "../lib/lockstep").lexically_normal()};
  const std::lock_guard lock(plugins_mutex);
  folders.insert(folders.end(), added_folders.begin(), added_folders.end());
  return folders;
}

void look_for_plugins_in(const std::filesystem::path& folder) {
  remember(folder, added_folders);
}

std::vector<std::filesystem::path> loaded_plugins() {
  const std::lock_guard lock(plugins_mutex);
  return loaded_files;
}

void* plugin_symbol(const Plugin& plugin, const std::string& symbol) {
  const auto file = find_plugin(plugin);
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw DeviceError(fmt::format(
        "cannot load {}: {}; install {} or add the folder that holds it to LD_LIBRARY_PATH, or {}",
        file.string(), last_loader_error(file), plugin.needs, plugin.otherwise));
  remember(file, loaded_files);
  if (void* const take = dlsym(handle, "lockstep_spell_advice_as"))
    reinterpret_cast<decltype(&spell_advice_as)>(take)(spelling());
  if (void* const address = dlsym(handle, symbol.c_str())) return address;
  throw DeviceError(
      fmt::format("{} has no function '{}': it belongs to another version of the program; "
                  "build both again with launch/build, or {}",
                  file.string(), symbol, plugin.otherwise));
}

std::string script_command(const std::string& name) {
  const std::string installed = "lockstep-" + name;
  std::error_code unknown;
  if (std::filesystem::exists(program_folder() / installed, unknown)) return installed;
  std::istringstream folders(environment_variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::filesystem::exists(std::filesystem::path(folder) / installed, unknown)) return installed;
  return "launch/" + name;
}

// shared_directories: beside the program first.

std::vector<std::filesystem::path> shared_directories(const std::filesystem::path& folder) {
  return {program_folder().parent_path() / "share/lockstep" / folder.filename(),
          LOCKSTEP_SOURCE_DIR / folder};
}

}  // namespace lockstep
