// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Free memory and cores: from /proc, the cgroups (version 2 and 1), and the limits of the shell.
#include "common/machine.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMachine = "this machine";
constexpr const char* kCgroup = "the memory limit of its container or Slurm job";

/// The number that value_after() begins with; none if that is another word ("max").
std::optional<std::uint64_t> number_after(const fs::path& file, std::string_view name) {
  std::uint64_t number = 0;
  return std::istringstream(value_after(file, name)) >> number ? std::optional(number) : std::nullopt;
}

void lower(FreeMemory& free, std::uint64_t bytes, const char* limited_by) {
  if (bytes < free.bytes) free = {bytes, limited_by};
}

/// Lowers free memory to what a cgroup leaves: its limit less its usage. The kernel can free the page cache in that.
void lower_to_cgroup(FreeMemory& free, const fs::path& folder, const char* limit, const char* usage,
                     const char* cache_prefix) {
  const auto most = number_after(folder / limit, ""), used = number_after(folder / usage, "");
  if (!most || !used) return;
  std::uint64_t cache = 0;
  for (const char* name : {"inactive_file ", "active_file "})
    cache += number_after(folder / "memory.stat", std::string(cache_prefix) + name).value_or(0);
  const std::uint64_t taken = *used - std::min(cache, *used);
  lower(free, *most - std::min(taken, *most), kCgroup);
}

/// The folders of a cgroup and of all that it lies in. Within a container its own may not exist, but the root does.
std::vector<fs::path> folders_of(const Cgroup& cgroup) {
  std::vector<fs::path> folders;
  fs::path path = cgroup.path;
  for (bool at_root = false; !at_root; path = path.parent_path()) {
    at_root = path == path.root_path();
    folders.push_back(cgroup.mount / path.relative_path());
  }
  return folders;
}

void lower_to_cgroups(FreeMemory& free, const Cgroup& cgroup) {
  for (const fs::path& folder : folders_of(cgroup)) {
    if (cgroup.is_version_2) {
      lower_to_cgroup(free, folder, "memory.max", "memory.current", "");
    } else {
      lower_to_cgroup(free, folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_");
    }
  }
}

/// A limit of each process by itself.
/// @param used_kib  the line of /proc/self/status that it is about
void lower_to_rlimit(FreeMemory& free, int processes, const fs::path& root, decltype(RLIMIT_AS) resource,
                     std::string_view used_kib, const char* limited_by) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const std::uint64_t used = 1024 * number_after(root / "proc/self/status", used_kib).value_or(0);
  const std::uint64_t left = limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur);
  lower(free, checked_product(left, processes), limited_by);
}

}  // namespace

std::string value_after(const fs::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string process_stat(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string stat;
  std::getline(file, stat,
               '\0');  // a read that fails, as where the process ends meanwhile, is no exception here
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? "" : stat.substr(name_end + 2);
}

namespace {

/// @param controller  "memory" or "cpu"
std::vector<Cgroup> cgroups_with(const std::string& controller, const fs::path& root) {
  std::vector<Cgroup> cgroups;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") cgroups.push_back({root / "sys/fs/cgroup", path, true});
    if (controllers.find("," + controller + ",") != controllers.npos)
      cgroups.push_back({root / "sys/fs/cgroup" / controller, path, false});
  }
  return cgroups;
}

/// The cores whose time a cgroup may use, rounded up; nothing: it has no quota.
std::optional<std::int64_t> cores_of_quota(const fs::path& folder, bool is_version_2) {
  std::istringstream words(is_version_2 ? value_after(folder / "cpu.max", "")
                                        : value_after(folder / "cpu.cfs_quota_us", "") + " " +
                                              value_after(folder / "cpu.cfs_period_us", ""));
  std::int64_t quota = 0, period = 0;  // microseconds; without a quota "max" or -1
  if (!(words >> quota >> period) || quota < 1 || period < 1) return std::nullopt;
  return quota / period + (quota % period != 0 ? 1 : 0);
}

}  // namespace

std::vector<Cgroup> memory_cgroups(const fs::path& root) {
  return cgroups_with("memory", root);
}

std::vector<int> usable_cpus(pid_t process, AffinityCall ask) {
  constexpr std::size_t kMostSets = 64;  // each has 1,024 CPUs: Linux is built for 8,192 at most
  std::vector<cpu_set_t> sets(1);
  while (ask(process, sets.size() * sizeof(cpu_set_t), sets.data()) != 0) {
    if (errno != EINVAL || sets.size() >= kMostSets) return {};
    sets.resize(2 * sets.size());  // the kernel's set is larger
  }
  std::vector<int> cpus;
  for (int first = 0; const cpu_set_t& set : sets) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(first + cpu);
    first += CPU_SETSIZE;
  }
  return cpus;
}

int available_cores(const fs::path& root, std::int64_t bound) {
  std::int64_t cores = bound > 0 ? bound : std::thread::hardware_concurrency();
  for (const Cgroup& cgroup : cgroups_with("cpu", root))
    for (const fs::path& folder : folders_of(cgroup))
      cores = std::min(cores, cores_of_quota(folder, cgroup.is_version_2).value_or(cores));
  return static_cast<int>(std::max<std::int64_t>(cores, 1));
}

FreeMemory free_memory(int processes, const fs::path& root) {
  FreeMemory free{kTooLarge, kMachine};
  const fs::path meminfo = root / "proc/meminfo";
  if (const auto available = number_after(meminfo, "MemAvailable:"))
    free.bytes =
        checked_product(1024U, checked_sum(*available, number_after(meminfo, "SwapFree:").value_or(0)));
  for (const Cgroup& cgroup : memory_cgroups(root)) lower_to_cgroups(free, cgroup);
  lower_to_rlimit(free, processes, root, RLIMIT_AS, "VmSize:", "ulimit -v");
  lower_to_rlimit(free, processes, root, RLIMIT_DATA, "VmData:", "ulimit -d");
  return free;
}

void require_memory(std::uint64_t bytes, const std::string& what, const std::string& help, int processes) {
  constexpr std::uint64_t kWorthAsking = 16 << 20;  // Less than that is there, or nothing is.
  if (bytes < kWorthAsking) return;
  const FreeMemory free = free_memory(processes);
  if (bytes <= free.bytes) return;
  throw MemoryError(fmt::format("not enough memory: {} would take {}, and {} leaves {}; {}", what,
                                format_memory(bytes), free.limited_by, format_memory(free.bytes), help));
}

namespace {

/// The most that is known to have been resident. Linux counts its peak roughly, and below what is resident now.
std::atomic<std::uint64_t> most_resident = 0;

std::uint64_t noted(std::uint64_t bytes) {
  std::uint64_t before = most_resident.load();
  while (before < bytes && !most_resident.compare_exchange_weak(before, bytes)) {
  }
  return bytes;
}

}  // namespace

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return file ? noted(resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) : 0;
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    noted(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);  // Linux counts in KiB
  resident_bytes();
  return most_resident.load();
}

std::uint64_t shared_resident_bytes() {
  const fs::path maps = "/proc/self/smaps_rollup";
  return 1024 *
         (number_after(maps, "Shared_Clean:").value_or(0) + number_after(maps, "Shared_Dirty:").value_or(0));
}

std::string format_memory(std::uint64_t bytes) {
  if (bytes == kTooLarge) return "more bytes than 64 bits can count";
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes);
  std::string_view unit = "B";
  for (const std::string_view next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    if (size < 999.5) break;
    size /= 1024;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", size, size < 9.95 ? 1 : 0, unit);
}

std::uint64_t raise_limit_of_open_files() {
  constexpr rlim_t kEnough = 65'536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= std::min(kEnough, limit.rlim_max)) return limit.rlim_cur;
  const rlimit raised{std::min(kEnough, limit.rlim_max), limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

// Why there are no more threads: what /proc, the shell's limits and the cgroups say.

namespace {

/// A cgroup's limit on tasks, from its path in version 2 and 1; "" or "max": none.
std::string most_tasks_of_cgroup() {
  const std::string v2 = value_after("/proc/self/cgroup", "0::");
  const std::string most = value_after("/sys/fs/cgroup" + v2 + "/pids.max", "");
  return most.empty() ? value_after("/sys/fs/cgroup/pids/pids.max", "") : most;
}

std::vector<std::string> limits() {
  std::vector<std::string> texts;
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    texts.push_back(fmt::format("ulimit -u allows this user {}", limit.rlim_cur));
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    texts.push_back(fmt::format("ulimit -v allows this process {} for its data and its threads' stacks",
                                format_memory(limit.rlim_cur)));
  if (const std::string most = most_tasks_of_cgroup(); !most.empty() && most != "max")
    texts.push_back(fmt::format("its container or Slurm job may have {} (pids.max)", most));
  if (texts.empty())
    texts.push_back(
        fmt::format("the system allows {} in all", value_after("/proc/sys/kernel/threads-max", "")));
  return texts;
}

}  // namespace

std::string explain_missing_thread() {
  return fmt::format(
      "a thread cannot be started: this process has {} threads, {}; start fewer ranks on this machine, "
      "give them fewer threads, or raise the limit",
      value_after("/proc/self/status", "Threads:"), fmt::join(limits(), ", "));
}

bool is_missing_thread(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

void throw_missing_thread(const std::system_error& error) {
  if (is_missing_thread(error)) throw DeviceError(explain_missing_thread());
  throw error;
}

std::thread start_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw_missing_thread(error);
  }
}

void end_threads(std::span<std::thread> threads, std::mutex& mutex, std::condition_variable& changed,
                 bool& ends) {
  {
    const std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
}

}  // namespace lockstep
