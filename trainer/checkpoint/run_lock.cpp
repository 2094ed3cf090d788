// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The lock file of a run directory.
#include "trainer/checkpoint/run_lock.hpp"

#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "trainer/checkpoint/json_fields.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <sstream>
#include <thread>

namespace lockstep {
namespace {

/// Field 22 of /proc/PID/stat; 0 if there is no such process, or all its threads have ended. An ended process may wait
/// for its parent for ever, if that is a container's first.
std::uint64_t start_ticks_of(std::int64_t pid) {
  std::istringstream fields(process_stat(fmt::format("/proc/{}", pid)));
  char state = 'X';
  std::string skipped;
  fields >> state;
  for (int field = 4; field < 20; ++field) fields >> skipped;
  std::uint64_t threads = 0, timer = 0, ticks = 0;
  fields >> threads >> timer >> ticks;
  const bool has_ended = (state == 'Z' || state == 'X') && threads <= 1;
  return has_ended ? 0 : ticks;
}

constexpr auto kOwnerFields = [](auto&& archive, LockOwner& owner) {
  archive("host", owner.host);
  archive("boot_id", owner.boot_id);
  archive("pid", owner.pid);
  archive("start_ticks", owner.start_ticks);
  archive("started", owner.started);
  archive("job", owner.job);
};

std::optional<LockOwner> read_owner(Env& env, const std::string& path) {
  constexpr std::uint64_t kMostBytes = 65536;  // a longer one is nothing that we wrote
  const std::vector<std::byte> bytes = env.read_first(path, kMostBytes);
  try {
    return read_fields<LockOwner>(parse_json_or_discard(as_text(bytes)), path, kOwnerFields);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

std::string without_domain(const std::string& host) {
  return host.substr(0, host.find('.'));
}

/// launch/run has started that job, asks its hosts before it starts another, and names those that do not answer.
bool is_lost(const std::string& host) {
  std::istringstream lost(environment_variable("LOCKSTEP_LOST_HOSTS"));
  for (std::string name; lost >> name;)
    if (without_domain(name) == without_domain(host)) return true;
  return false;
}

[[noreturn]] void refuse(const std::string& path, const std::optional<LockOwner>& owner, const char* why) {
  if (!owner)
    throw RunInUseError(fmt::format(
        "{}: another job is using this run directory; wait for it, or set another run.dir", path));
  throw RunInUseError(fmt::format("{}: this run directory belongs to job {} (host {}, pid {}, since {}): {}",
                                  path, owner->job, owner->host, owner->pid, owner->started, why));
}

}  // namespace

LockOwner LockOwner::self(const std::string& job) {
  const std::int64_t pid = ::getpid();
  const std::string now = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return {host_name(), host_boot_id(), pid, start_ticks_of(pid), now, job};
}

bool on_same_host(const LockOwner& a, const LockOwner& b) {
  return a.host == b.host || (!a.boot_id.empty() && a.boot_id == b.boot_id);
}

std::optional<LockOwner> lock_owner(Env& env, const std::string& run_dir) {
  const std::string path = run_dir + "/lock";
  return env.exists(path) ? read_owner(env, path) : std::nullopt;
}

bool is_running(const LockOwner& owner) {
  const bool same_boot = owner.boot_id == host_boot_id();
  return same_boot && owner.start_ticks != 0 && start_ticks_of(owner.pid) == owner.start_ticks;
}

RunLock::RunLock(Env& env, const std::string& run_dir, const std::string& job, const LockPatience& patience)
    : env_(env), run_dir_(run_dir) {
  const LockOwner self = LockOwner::self(job);
  const std::string path = run_dir + "/lock";
  std::optional<LockOwner> owner;
  const auto is_free = [&] {
    claim_ = env.claim(path);
    owner = read_owner(env, path);
    if (claim_ && owner && is_running(*owner)) claim_.reset();
    return claim_ != nullptr;
  };
  constexpr std::chrono::milliseconds kPause{50};
  bool locked = is_free();
  const auto give_up = Clock::now() + patience.limit;
  if (!locked && patience.limit > kPause && patience.say)
    patience.say(fmt::format("{}: another job is using this run directory; waiting {:.2g} s for its end",
                             path, std::chrono::duration<double>(patience.limit).count()));
  while (!locked && Clock::now() < give_up) {
    std::this_thread::sleep_for(kPause);
    locked = is_free();
  }
  if (!locked) refuse(path, owner, "it is still running; wait for it, stop it, or set another run.dir");
  if (owner && !on_same_host(*owner, self) && !is_lost(owner->host))
    refuse(path, owner,
           "'mpirun --host HOST lockstep doctor --take-over RUN' asks that host whether the job is gone, and "
           "frees the lock if so (otherwise delete this file once you know)");
  claim_->write(json_text(json_of_fields(self, kOwnerFields), 1) + "\n");
}

void RunLock::require_same_directory() const {
  if (read_patiently(env_, [&] { return claim_->has_its_name(); })) return;
  throw IoError(fmt::format(
      "{}: this run directory, or the lock in it, was removed, renamed or replaced while the run trained; "
      "nothing more is saved there. What it has saved is where the directory was moved to",
      run_dir_));
}

RunLock::~RunLock() {
  try {
    claim_->write("");
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the owner in it ends with this process, which is
                            // enough
  }
}

}  // namespace lockstep
