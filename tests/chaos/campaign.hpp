// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A whole test: the undisturbed run, then lives side by side until enough blows have fallen, then the tally.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

struct Disturbance;  // tests/chaos/chaos_job.hpp

struct Options {
  std::string program;         ///< path of lockstep
  std::int64_t rounds = 60;    ///< blows in all
  std::int64_t forgeries = 0;  ///< forged files in all, in chaos prove
  std::uint64_t seed = 1;
  std::int64_t only_life = 0;  ///< this one alone; 0: as many as the rounds need
  int jobs = 3;                ///< lives at the same time
  bool verbose = false;        ///< tells of every start
  bool slurm = false;          ///< some runs under a Slurm that is running here
};

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 after a violation.
int run_campaign(const Options& options, const Disturbance& disturbance);

/// Calls `live` with 1, 2, ... from options.jobs threads while `goes_on` says so; or with options.only_life alone.
void live_side_by_side(const Options& options, const std::function<bool()>& goes_on,
                       const std::function<void(std::int64_t)>& live);

// Counters of a chaos test, printed at its end.

/// May be used by several threads.
class Tally {
 public:
  /// `title` heads the counts of `labels`, which are printed in this order, zeros included.
  void section(const std::string& title, const std::vector<std::string>& labels);
  /// Counts one more. A label of no section opens a last one, so that nothing counted is hidden.
  void add(const std::string& label);
  /// Steps between the last one logged and the checkpoint that was left, of one kill.
  void lost(std::int64_t steps);

  std::string text() const;

 private:
  struct Section {
    std::string title;
    std::vector<std::string> labels;
  };

  mutable std::mutex mutex_;
  std::vector<Section> sections_;
  std::map<std::string, std::int64_t> counts_;
  std::vector<std::int64_t> lost_;
};

/// The blows that remain to be dealt, shared by all runs.
class Rounds {
 public:
  explicit Rounds(std::int64_t total) : total_(total) {}
  /// False: there is none left.
  bool take() {
    const std::lock_guard lock(mutex_);
    if (taken_ == total_) return false;
    ++taken_;
    return true;
  }
  void give_back() { --taken_; }  ///< the blow did not fall
  bool finished() const { return taken_ == total_; }
  std::int64_t taken() const { return taken_; }
  std::int64_t total() const { return total_; }

 private:
  std::mutex mutex_;  ///< so that no two take the last one
  const std::int64_t total_;
  std::atomic<std::int64_t> taken_ = 0;
};

// Random choices that depend on the seed and the life alone: the same numbers choose the same blows again.

class Dice {
 public:
  Dice(std::uint64_t seed, std::int64_t life) {
    std::seed_seq words{seed & 0xffffffffU, seed >> 32U, static_cast<std::uint64_t>(life)};
    engine_.seed(words);
  }

  /// Between `low` and `high`, both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool percent(int chance) { return between(1, 100) <= chance; }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }
  template <typename T>
  T& pick(std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

// How long a test waits before it calls something a hang.

/// Counts time in which this process was awake and asking. One that was stopped and continued, or starved,
/// has lost no patience meanwhile.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(Clock::duration limit) : left_(limit) {}

  /// To be asked again and again while waiting.
  bool is_exhausted() {
    constexpr std::chrono::milliseconds kMostAtOnce{100};
    const auto now = Clock::now();
    left_ -= std::min<Clock::duration>(now - last_, kMostAtOnce);
    last_ = now;
    return left_ < Clock::duration::zero();
  }

 private:
  Clock::duration left_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace lockstep::chaos
