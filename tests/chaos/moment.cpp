// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/moment.hpp"

#include "tests/chaos/patience.hpp"
#include "tests/chaos/run_facts.hpp"
#include "tests/chaos/violation.hpp"

#include <fmt/format.h>

#include <functional>
#include <thread>
#include <utility>

namespace lockstep::chaos {
namespace {

using std::chrono::microseconds;

constexpr std::chrono::minutes kPatienceWithoutProgress{2};

/// Asks `happened` again and again. False if the process ended first.
bool poll(const std::function<bool()>& happened, microseconds pause, ChildProcess& process,
          const std::string& run_dir) {
  Patience patience(kPatienceWithoutProgress);
  std::int64_t step = last_logged_step(run_dir);
  while (!happened()) {
    if (process.exit_code()) return false;
    if (patience.is_exhausted()) {
      const std::int64_t before = std::exchange(step, last_logged_step(run_dir));
      if (step == before) throw Violation("no progress for two minutes: it hangs");
      patience = Patience(kPatienceWithoutProgress);
    }
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

std::string Moment::describe() const {
  const double milliseconds = std::chrono::duration<double, std::milli>(delay).count();
  if (kind == Kind::kStartUp) return fmt::format("{:.1f} ms after the start", milliseconds);
  return fmt::format("{:.1f} ms after {} step {}", milliseconds,
                     kind == Kind::kSave ? "a save seen after" : "logging", step);
}

Moment random_moment(Dice& dice, std::int64_t first_step) {
  const auto choice = dice.between(1, 100);
  if (choice <= 25) return {Moment::Kind::kStartUp, 0, microseconds(dice.between(0, 700'000))};
  if (choice <= 60) {
    const auto step = first_step + dice.between(1, 30);
    return {Moment::Kind::kSave, step, microseconds(dice.between(0, 3'000))};
  }
  const auto step = first_step + dice.between(1, 60);
  return {Moment::Kind::kStep, step, microseconds(dice.between(0, 15'000))};
}

bool await(const Moment& moment, ChildProcess& process, const std::string& run_dir) {
  if (moment.kind != Moment::Kind::kStartUp) {
    const auto logged = [&] { return last_logged_step(run_dir) >= moment.step; };
    if (!poll(logged, microseconds(1000), process, run_dir)) return false;
  }
  if (moment.kind == Moment::Kind::kSave &&
      !poll([&] { return is_saving(run_dir); }, microseconds(200), process, run_dir)) {
    return false;
  }
  std::this_thread::sleep_for(moment.delay);
  return !process.exit_code();
}

}  // namespace lockstep::chaos
