// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The frame of all campaigns. Lives side by side, each in directories and with dice of its own, until all
/// rounds are taken; what broke a promise and how to see it again; the tally.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/scratch.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::chaos {

class FaultCampaign {
 public:
  virtual ~FaultCampaign() = default;
  FaultCampaign(const FaultCampaign&) = delete;
  FaultCampaign& operator=(const FaultCampaign&) = delete;

  /// All lives, then the tally. Returns 0, or 1 where one broke a promise.
  int run();

 protected:
  /// @param name  of the command, "wrong-rank"
  FaultCampaign(const Options& options, std::string name)
      : options_(options), rounds_(options.rounds), name_(std::move(name)) {}

  /// Names what will be counted, and trains what lives are compared with.
  virtual void prepare() = 0;
  /// A life, which adds to `story` what it does. @throws Violation
  virtual void live(std::int64_t number, const LifeDirectories& directories, Dice& dice,
                    std::string& story) = 0;
  /// Lives side by side until all rounds are taken.
  virtual void live_all();

  /// The text at the end, above the line that sums it up.
  virtual std::string text() const { return tally_.text(); }
  /// Beside those of lives.
  virtual bool kept_all_promises() const { return true; }

  bool broke_a_promise() const { return violations_ > 0; }
  /// A line for people who wait.
  void tell(const std::string& line);
  /// live() in directories of its own, and what is said of it.
  void live_one(std::int64_t number);

  /// A shell command, in which faults are allowed, with what Open MPI needs.
  testing::Outcome start(const std::string& command) const;
  testing::Outcome train(const ChaosJob& job, const Placement& placement, const std::string& run,
                         const std::string& more = "") const;

  /// The end of one rank alone.
  struct Reference {
    std::string last_line, trail;
  };
  Reference train_reference(const ChaosJob& job, const std::string& name) const;

  const Options& options_;
  Scratch scratch_;
  Tally tally_;
  Rounds rounds_;

 private:
  std::string name_;
  void show_progress();

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::int64_t shown_tenths_ = 0;
  std::atomic<int> violations_{0};
  std::mutex output_;
};

/// The labels of a table of faults, for the tally.
std::vector<std::string> labels_of(const auto& things) {
  std::vector<std::string> labels;
  for (const auto& thing : things) labels.emplace_back(thing.label);
  return labels;
}

/// "flip-bit weights 17:3" of "flip-bit weights {}": any element, and one of the bits up to `last_bit`.
std::string aimed(const char* fault, Dice& dice, int last_bit);
/// The keys that inject a fault.
std::string injected(std::int64_t rank, std::int64_t step, const std::string& what);

}  // namespace lockstep::chaos
