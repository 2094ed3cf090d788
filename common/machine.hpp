// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts of this machine: clock, name, environment, and the memory and threads that a process may still use.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

// Facts from the files of /proc and of cgroups.

/// The rest of the first line that begins with `name`, without the spaces before it; "": there is none.
std::string value_after(const std::filesystem::path& file, std::string_view name);

/// /proc/PID/stat from the state on: "S 1 ...". The name before it may hold anything but ends with the last ')'. "": no
/// such process. @param process  /proc/PID
std::string process_stat(const std::filesystem::path& process);

/// A control group that this process is in.
struct Cgroup {
  std::filesystem::path mount;  ///< directory of its controller's files
  std::filesystem::path path;   ///< its own, below that; inside a container it may not be there
  bool is_version_2 = false;
};

/// Those that bound memory, of /proc/self/cgroup: "0::/user.slice" of version 2, "9:memory:/slurm/job_3" of version 1.
std::vector<Cgroup> memory_cgroups(const std::filesystem::path& root);

// Memory that a process may still use, asked before it uses much: otherwise Linux kills it without a
// message.

struct FreeMemory {
  std::uint64_t bytes = 0;
  std::string limited_by;  ///< "this machine", "the memory limit of its container or Slurm job", "ulimit -v"
};

/// The least of three bounds. These are the machine's available memory (swap included), what this process's cgroups
/// leave, and what ulimit -v and -d leave to each process. Bounds that cannot be read do not count.
/// @param processes  number of processes like this one that share the machine
/// @param root       folder of /proc and /sys, for tests
FreeMemory free_memory(int processes = 1, const std::filesystem::path& root = "/");

/// @param bytes  bytes of all these processes together
/// @param what   the thing that needs them: "the activations of net, 64 samples at a time"
/// @param help   advice that makes it smaller
/// @throws MemoryError  there is not that much left: the thing, its bytes, the bytes there are, and the advice
void require_memory(std::uint64_t bytes, const std::string& what, const std::string& help, int processes = 1);

/// Bytes of this process in memory now, its libraries included; 0: the kernel does not say.
std::uint64_t resident_bytes();

/// The most that this process has had in memory at once, its libraries included. No less than resident_bytes() was.
std::uint64_t peak_resident_bytes();

/// The part of resident_bytes() that other processes have, too: libraries, sets that ranks of a host share. 0: none, or
/// the kernel does not say. It walks the page tables of this process.
std::uint64_t shared_resident_bytes();

/// "7.3 GiB", "12 MiB", "640 B"; "more than 64 bits can count" of kTooLarge.
std::string format_memory(std::uint64_t bytes);

/// Raises the limit of open files to 65,536, or as far as it may be raised. A rank among a thousand has more than a
/// thousand connections, a set may lie in as many files, and shells allow a process 1,024.
/// @returns the number that this process may have open from now on
std::uint64_t raise_limit_of_open_files();

/// sched_getaffinity(), or what stands in for it in tests.
using AffinityCall = int (*)(pid_t process, std::size_t bytes, cpu_set_t* sets);

/// Numbers of the CPUs that a process may use, ascending; none: the system does not say.
/// @param process  0: the calling thread
std::vector<int> usable_cpus(pid_t process = 0, AffinityCall ask = ::sched_getaffinity);

/// Cores that this process may use, at least 1. It may be bound to some; its cgroups, and all that these lie in, may
/// have a quota on processor time. The least counts, rounded up: 2 of 1.5.
/// @param root   folder of /proc and /sys, for tests
/// @param bound  the number of CPUs that it is bound to, or several such processes together; 0: not known
int available_cores(const std::filesystem::path& root = "/", std::int64_t bound = std::ssize(usable_cpus()));

// The clock by which durations and deadlines are measured; it never jumps.

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Since 1970, by the clock that people set.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Identity of this machine: its name in messages and locks, its environment, and the id of its boot.

/// Result of gethostname(); "unknown-host" if it is empty.
inline std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown-host";
  return name.data();
}

/// A variable of the environment; empty if it is not set. Nothing changes one while there are threads.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

/// The kernel's id of this boot, the same in all containers of a machine; empty where there is none.
inline std::string host_boot_id() {
  return value_after("/proc/sys/kernel/random/boot_id", "");
}

// Starting and ending threads. All threads of the program start here, so that a refusal of the system is one sentence.

/// "a thread cannot be started: this process has 300 threads, ...": how many it has, which limits hold, what helps.
std::string explain_missing_thread();

/// True of the error that std::thread and std::async throw where the system gives no more threads.
bool is_missing_thread(const std::system_error& error);

/// @throws DeviceError  with the text of explain_missing_thread()
std::thread start_thread(std::function<void()> body);

/// Tells threads that wait for `changed` to end, and waits until they have. `ends` is guarded by the mutex.
void end_threads(std::span<std::thread> threads, std::mutex& mutex, std::condition_variable& changed,
                 bool& ends);

[[noreturn]] void throw_missing_thread(const std::system_error& error);

/// std::async on a new thread. @throws as start_thread
auto start_async(auto&& work) {
  try {
    return std::async(std::launch::async, std::forward<decltype(work)>(work));
  } catch (const std::system_error& error) {
    throw_missing_thread(error);
  }
}

}  // namespace lockstep
