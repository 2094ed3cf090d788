// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts about the build, the libraries that are loaded, and the files that come with the program.
#include "comm/mpi/mpi_communicator.hpp"
#include "common/installed.hpp"
#include "common/json_text.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/platform.hpp"
#include "models/network.hpp"
#include "trainer/commands/machine_report.hpp"
#include "trainer/ranks/equal_ranks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Returns the result of `find`, or the message of its error.
std::string or_why_not(const std::function<std::string()>& find) {
  try {
    return find();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The first of the folders that exists.
std::string jobs_folder() {
  std::error_code ignored;
  for (const auto& folder : shared_directories("launch/jobs"))
    if (fs::is_directory(folder, ignored)) return folder.string();
  return "not found";
}

/// "ready", or why it cannot be loaded.
std::string plugin_state(const char* name, const char* needs, const char* symbol) {
  return or_why_not([&] {
    plugin_symbol({.name = name, .needs = needs, .otherwise = "do without it"}, symbol);
    return std::string("ready");
  });
}

/// Version that a loaded library reports: 22809 for NCCL 2.28.9, 91900 for cuDNN 9.19.0; 0: none.
long own_version(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  int version = 0;
  if (void* const nccl = dlsym(library, "ncclGetVersion")) {
    reinterpret_cast<int (*)(int*)>(nccl)(&version);
  } else if (void* const cudnn = dlsym(library, "cudnnGetVersion")) {
    version = static_cast<int>(reinterpret_cast<std::size_t (*)()>(cudnn)());
  }
  dlclose(library);
  return version;
}

/// The libraries of GPUs that are in memory: their files, followed by their versions.
std::vector<std::string> gpu_libraries() {
  std::vector<std::string> texts;
  for (const fs::path& file : loaded_libraries({"libcuda.so", "libnccl.so", "libcudnn.so", "libcublas.so"})) {
    std::error_code ignored;
    const long version = own_version(file.string());
    texts.push_back(fs::canonical(file, ignored).string());
    if (version != 0) texts.back() += fmt::format(" ({})", version);
  }
  return texts;
}

/// A line for people, and a key for programs.
struct VersionFact {
  std::string_view label;  ///< beginning of its line
  const char* key;
  nlohmann::ordered_json value;  ///< a text; of a list each has its line
};

std::vector<VersionFact> version_facts() {
  const BuildFacts build = build_facts();
  return {{"commit", "commit", build.commit},
          {"compiler", "compiler", build.compiler},
          {"flags", "flags", build.flags},
          {"GPU kernels", "gpu_kernels", build.gpu},
          {"MPI", "mpi", or_why_not(mpi_library)},
          {"processor", "simd", {{"in_use", cpu::simd_name()}, {"choices", cpu::simd_choices()}}},
          {"CUDA", "cuda", or_why_not([] { return cuda::platform().versions(); })},
          {"NCCL", "nccl", plugin_state("lockstep_nccl", "NCCL", "lockstep_nccl_shares_gpus")},
          {"cuDNN", "cudnn", plugin_state("lockstep_vendor", "cuDNN and cuBLAS", "lockstep_make_vendor_ops")},
          {"loaded", "gpu_libraries", gpu_libraries()},  // after the plugins, which load them
          {"program", "program", program_path()},
          {"models", "models", or_why_not([] { return fs::path(find_model("net")).parent_path().string(); })},
          {"jobs", "jobs", jobs_folder()}};
}

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value;
  return fmt::format("{} in use, of {}", std::string(value["in_use"]),
                     fmt::join(value["choices"].get<std::vector<std::string>>(), ", "));
}

}  // namespace

std::string version_line() {
  return std::string("lockstep ") + LOCKSTEP_VERSION;
}

std::string version_report() {
  std::string text = version_line();
  for (const VersionFact& fact : version_facts()) {
    const auto lines = fact.value.is_array() ? fact.value : nlohmann::ordered_json::array({fact.value});
    for (const auto& line : lines) text += fmt::format("\n{:<12} {}", fact.label, text_of(line));
  }
  return text;
}

std::string version_json() {
  nlohmann::ordered_json json = {{"format", 1}, {"version", LOCKSTEP_VERSION}};
  for (const VersionFact& fact : version_facts()) json[fact.key] = fact.value;
  return json_text_in_ascii(json);
}

}  // namespace lockstep
