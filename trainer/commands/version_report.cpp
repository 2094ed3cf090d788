// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts about the build, the libraries that are loaded, and the files that come with the program.
#include "comm/mpi/mpi_communicator.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/json_text.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/device.hpp"
#include "models/network.hpp"
#include "trainer/commands/machine_report.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
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

/// What `find` returns, or why it cannot.
std::string or_why_not(const std::function<std::string()>& find) {
  try {
    return find();
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string path_of_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).string();
}

/// The first of the folders that exists.
std::string jobs_folder() {
  std::error_code ignored;
  for (const auto& folder : shared_directories("launch/jobs"))
    if (fs::is_directory(folder, ignored)) return folder.string();
  return "not found";
}

/// "ready", or why it cannot be loaded.
std::string plugin_state(const Plugin& plugin, const std::string& symbol) {
  return or_why_not([&] {
    plugin_symbol(plugin, symbol);
    return std::string("ready");
  });
}

/// What a library that is in memory says itself: 22809 for NCCL 2.28.9, 91900 for cuDNN 9.19.0; 0: nothing.
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

/// The libraries of GPUs that are in memory: their files, and behind them what they say.
std::vector<std::string> gpu_libraries() {
  std::vector<std::string> files;
  const auto add = [](dl_phdr_info* info, std::size_t /*size*/, void* found) {
    const std::string name = fs::path(info->dlpi_name).filename().string();
    for (const std::string_view library : {"libcuda.so", "libnccl.so", "libcudnn.so", "libcublas.so"})
      if (name.starts_with(library))
        static_cast<std::vector<std::string>*>(found)->push_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &files);
  for (std::string& file : files) {
    std::error_code ignored;
    const long version = own_version(file);
    file = fs::canonical(file, ignored).string();
    if (version != 0) file += fmt::format(" ({})", version);
  }
  return files;
}

struct VersionFacts {
  BuildFacts build = build_facts();
  std::string mpi = or_why_not(mpi_library);
  std::string simd = cpu::simd_name();
  std::vector<std::string> simd_choices = cpu::simd_choices();
  std::string gpu = or_why_not([] { return cuda::platform().versions(); });
  std::string nccl = plugin_state({.name = "lockstep_nccl", .needs = "NCCL", .otherwise = "do without it"},
                                  "lockstep_nccl_shares_gpus");
  std::string vendor =
      plugin_state({.name = "lockstep_vendor", .needs = "cuDNN and cuBLAS", .otherwise = "do without it"},
                   "lockstep_make_vendor_ops");
  std::vector<std::string> libraries = gpu_libraries();  ///< after the plugins, which load them
  std::string program = path_of_program();
  std::string models = or_why_not([] { return fs::path(find_model("net")).parent_path().string(); });
  std::string jobs = jobs_folder();
};

}  // namespace

std::string version_line() {
  return std::string("lockstep ") + LOCKSTEP_VERSION;
}

std::string version_report() {
  const VersionFacts facts;
  std::string text = version_line();
  const auto add = [&](std::string_view what, std::string_view value) {
    text += fmt::format("\n{:<12} {}", what, value);
  };
  add("commit", facts.build.commit);
  add("compiler", facts.build.compiler);
  add("flags", facts.build.flags);
  add("GPU kernels", facts.build.gpu);
  add("MPI", facts.mpi);
  add("processor", fmt::format("{} in use, of {}", facts.simd, fmt::join(facts.simd_choices, ", ")));
  add("CUDA", facts.gpu);
  add("NCCL", facts.nccl);
  add("cuDNN", facts.vendor);
  for (const std::string& library : facts.libraries) add("loaded", library);
  add("program", facts.program);
  add("models", facts.models);
  add("jobs", facts.jobs);
  return text;
}

std::string version_json() {
  const VersionFacts facts;
  const nlohmann::ordered_json json = {{"format", 1},
                                       {"version", LOCKSTEP_VERSION},
                                       {"commit", facts.build.commit},
                                       {"compiler", facts.build.compiler},
                                       {"flags", facts.build.flags},
                                       {"gpu_kernels", facts.build.gpu},
                                       {"mpi", facts.mpi},
                                       {"simd", {{"in_use", facts.simd}, {"choices", facts.simd_choices}}},
                                       {"cuda", facts.gpu},
                                       {"nccl", facts.nccl},
                                       {"cudnn", facts.vendor},
                                       {"gpu_libraries", facts.libraries},
                                       {"program", facts.program},
                                       {"models", facts.models},
                                       {"jobs", facts.jobs}};
  return json_text_in_ascii(json);
}

}  // namespace lockstep
