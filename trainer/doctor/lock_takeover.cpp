// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Boot id and start time, as the lock has them, against those of the host itself.
#include "trainer/doctor/lock_takeover.hpp"

#include "common/files/env.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/doctor/remote_command.hpp"

#include <fmt/format.h>

#include <sstream>

namespace lockstep {
namespace {

/// What the other host says of a process.
struct Life {
  std::string boot_id;
  std::uint64_t start_ticks = 0;  ///< 0: there is no such process
};

/// The lines are marked: a login shell may say more.
Life life_in(const std::string& text) {
  Life life;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "lockstep-boot:") words >> life.boot_id;
    if (word == "lockstep-ticks:") words >> life.start_ticks;
  }
  return life;
}

/// The name of the process, in brackets, may hold anything: what stands behind the last one counts.
Life ask_host(const LockOwner& owner, const std::string& place) {
  const auto output = run_on_host(
      owner.host,
      fmt::format("echo lockstep-boot: $(cat /proc/sys/kernel/random/boot_id); echo lockstep-ticks: "
                  "$(sed \"s/.*) //\" /proc/{}/stat 2>/dev/null | cut -d \" \" -f 20)",
                  owner.pid));
  Life life = life_in(output.text);
  if (life.boot_id.empty()) {
    throw RunInUseError(
        fmt::format("{}: belongs to job {} (pid {} on {}, since {}), and {} cannot be asked whether that "
                    "still runs ('ssh {} "
                    "true' fails); once you know that it does not, delete {}/lock",
                    place, owner.job, owner.pid, owner.host, owner.started, owner.host, owner.host, place));
  }
  return life;
}

}  // namespace

std::string take_over_lock(const std::string& run_dir) {
  Env& env = Env::posix();
  const auto owner = lock_owner(env, run_dir);
  if (!owner) return fmt::format("{}: no job holds it", run_dir);
  const Life life = ask_host(*owner, run_dir);
  const bool rebooted = life.boot_id != owner->boot_id;
  if (!rebooted && life.start_ticks == owner->start_ticks) {
    throw RunInUseError(fmt::format("{}: job {} still runs: pid {} on {}, since {}; stop it there", run_dir,
                                    owner->job, owner->pid, owner->host, owner->started));
  }
  release_lock_of(env, run_dir, *owner);
  return fmt::format("{}: freed; job {} is gone ({})", run_dir, owner->job,
                     rebooted ? fmt::format("{} was started again since", owner->host)
                              : fmt::format("no process {} on {}", owner->pid, owner->host));
}

}  // namespace lockstep
