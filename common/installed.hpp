// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files installed beside the program: plugins that are loaded at their first use, and files that come with it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

// Parts of the program that are loaded at their first use, because they need libraries that a machine
// may lack. lockstep_nccl.so needs NCCL, lockstep_vendor.so needs cuDNN and cuBLAS.
//
// Such a part is a shared object beside the program. It has one extern "C" function, declared in a header that
// both sides include. CMake: lockstep_add_plugin() in CMakeLists.txt. It carries a copy of the libraries that it
// links (common, cudart), so nothing may depend on the two sides sharing a global variable
// (the spelling of advice is handed over: common/error.hpp); classes, virtual calls and exceptions cross
// the boundary as usual.

struct Plugin {
  std::string name;       ///< name of the file, without ".so": "lockstep_nccl"
  std::string needs;      ///< library that must be installed: "NCCL"
  std::string otherwise;  ///< other way for the user: "use another backend"
};

/// Folders with plugins, in the order of the search. That of the running executable, ../lib/lockstep from there, and those
/// that were added.
std::vector<std::filesystem::path> plugin_folders();
/// Adds a folder.
void look_for_plugins_in(const std::filesystem::path& folder);

/// The files of the plugins that were loaded so far, in the order of their first use.
std::vector<std::filesystem::path> loaded_plugins();

/// Loads the plugin, if it is not loaded yet, and returns the address of its extern "C" `symbol`. It stays
/// loaded until the process ends.
/// @throws DeviceError  file, cause and fix, if it is not there, does not load or lacks the symbol
void* plugin_symbol(const Plugin& plugin, const std::string& symbol);

/// A function of a plugin: plugin_function<decltype(lockstep_make_nccl)>(plugin, "lockstep_make_nccl").
template <typename Function>
Function* plugin_function(const Plugin& plugin, const std::string& symbol) {
  return reinterpret_cast<Function*>(plugin_symbol(plugin, symbol));
}

// Files that come with the program: scripts, networks, jobs, published hashes.

/// How a script of launch/ is started: "lockstep-get-data" where it is installed, beside the program or in $PATH, otherwise
/// "launch/get-data".
std::string script_command(const std::string& name);

/// Places of a folder of such files, "launch/jobs" or "models" of the sources, in the order of the search. First
/// ../share/lockstep/jobs beside the program: an installed program has its files, even if its sources are gone or
/// changed. The sources that it was built from come last.
std::vector<std::filesystem::path> shared_directories(const std::filesystem::path& folder);

}  // namespace lockstep
