// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The CPUs that the system gives, /proc and /sys.
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "trainer/ranks/checks.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// "max", and numbers near 2^63, mean none.
bool has_limit(const fs::path& file) {
  std::uint64_t bytes = 0;
  return (std::ifstream(file) >> bytes) && bytes < 1ULL << 60;
}

/// Kills in its own cgroup, if that limits memory: version 2 in memory.events, version 1 in memory.oom_control.
std::int64_t oom_kills(const fs::path& root) {
  for (const auto& [mount, path, unified] : memory_cgroups(root)) {
    fs::path folder = mount / path.relative_path();
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) folder = mount;  // inside a container its own cgroup is the root
    if (!has_limit(folder / (unified ? "memory.max" : "memory.limit_in_bytes"))) continue;
    const auto kills = value_after(folder / (unified ? "memory.events" : "memory.oom_control"), "oom_kill ");
    if (const auto count = std::strtoll(kills.c_str(), nullptr, 10); count > 0) return count;
  }
  return 0;
}

std::string launcher_name(Launcher launcher, const Environment& environment) {
  if (launcher == Launcher::kOpenMpi) return "mpirun";
  if (launcher == Launcher::kSrun) return "srun";
  if (launcher != Launcher::kPmi) return "";
  return environment("SLURM_STEP_ID") != nullptr && environment("SLURM_PROCID") != nullptr ? "srun" : "PMI";
}

int number_in(const char* text) {
  return text == nullptr ? 0 : static_cast<int>(std::strtol(text, nullptr, 10));
}

}  // namespace

const Surroundings& Surroundings::real() {
  static const Surroundings world{.root = "/", .environment = std::getenv};
  return world;
}

RankView look_around(const Surroundings& world) {
  const Launch launch = read_launch(world.environment);
  RankView view;
  view.launched = launch.world_size;
  view.launcher = launcher_name(launch.launcher, world.environment);
  view.host = host_name();
  view.pid = ::getpid();
  view.cores = usable_cpus();
  view.launcher_cores = view.launcher.empty() ? 0 : static_cast<int>(usable_cpus(::getppid()).size());
  view.cpus_per_task = view.launcher == "srun" ? number_in(world.environment("SLURM_CPUS_PER_TASK")) : 0;
  const FreeMemory free = free_memory(1, world.root);
  view.free_bytes = free.bytes;
  view.free_limited_by = free.limited_by;
  view.oom_kills = oom_kills(world.root);
  view.settings = visible_settings(environ);
  return view;
}

std::string model_of_processor(const fs::path& root) {
  const std::string name = value_after(root / "proc/cpuinfo", "model name\t:");
  if (!name.empty()) return name;
  utsname machine{};
  return uname(&machine) == 0 ? machine.machine : "unknown";
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

fs::path existing_directory(const fs::path& path) {
  std::error_code ignored;
  fs::path there = fs::absolute(path, ignored).lexically_normal();
  while (!fs::is_directory(there, ignored) && there != there.parent_path()) there = there.parent_path();
  return there;
}

std::uint64_t disk_free(const fs::path& directory) {
  std::error_code unknown;
  return fs::space(existing_directory(directory), unknown).available;
}

// Names by their beginnings; secrets by the words in their names.

namespace {

constexpr std::array<std::string_view, 14> kOfInterest{
    "OMPI_MCA_", "OMPI_ALLOW_", "MPICH_",         "HYDRA_",       "NCCL_",          "UCX_",       "LOCKSTEP_",
    "CUDA_",     "OMP_NUM_",    "SLURM_CPUS_PER", "SLURM_NTASKS", "SLURM_MPI_TYPE", "SRUN_CPUS_", "ROCR_"};
/// Settings that mpirun makes for its ranks.
constexpr std::array<std::string_view, 8> kOfLaunchers{"OMPI_MCA_orte_", "OMPI_MCA_ess",
                                                       "OMPI_MCA_pmix",  "OMPI_MCA_initial_wdir",
                                                       "OMPI_MCA_shmem", "OMPI_MCA_mpi_oversubscribe",
                                                       "OMPI_MCA_opal_", "OMPI_MCA_rmaps_ppr"};
constexpr std::array<std::string_view, 9> kSecretWords{
    "token", "secret", "passw", "credential", "api_key", "cookie", "_key", "transports", "auth"};

template <typename Names>
bool begins_with_one(std::string_view name, const Names& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return name.starts_with(b); });
}

bool is_secret(std::string_view name) {
  const std::string small = in_small_letters(std::string(name));
  return std::ranges::any_of(kSecretWords, [&](auto word) { return small.find(word) != small.npos; });
}

/// "***" in place of a secret. Of several URLs, as LOCKSTEP_MIRRORS has them, each has its own.
std::string masked(std::string_view name, std::string_view value) {
  if (is_secret(name)) return "***";
  std::string shown;
  for (auto scheme = value.find("://"); scheme != value.npos; scheme = value.find("://")) {
    shown += value.substr(0, scheme + 3);
    value.remove_prefix(scheme + 3);
    const std::size_t at = value.substr(0, value.find_first_of(" \t\n")).rfind('@');
    if (at == value.npos) continue;
    shown += "***";
    value.remove_prefix(at);
  }
  return shown + std::string(value);
}

}  // namespace

std::map<std::string, std::string> visible_settings(const char* const* environment) {
  std::map<std::string, std::string> settings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size() || !begins_with_one(name, kOfInterest) ||
        begins_with_one(name, kOfLaunchers))
      continue;
    settings[std::string(name)] = masked(name, entry.substr(name.size() + 1));
  }
  return settings;
}

}  // namespace lockstep
