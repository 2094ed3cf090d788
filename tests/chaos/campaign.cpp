// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/campaign.hpp"

#include "tests/chaos/fault_campaign.hpp"
#include "tests/chaos/record_damage.hpp"
#include "tests/support/prelude.hpp"

#include <fmt/ranges.h>

namespace lockstep::chaos {

namespace {

std::int64_t count_earlier_runs(const std::string& run_dir) {
  std::int64_t count = 0;
  while (std::filesystem::exists(fmt::format("{}/previous-{}", run_dir, count + 1))) ++count;
  return count;
}

// One run from its first start to its end, disturbed on the way as often as the dice say.

/// Settings that all lives of one test share.
struct World {
  const ChaosJob& job;
  Result reference;
  std::string reference_hash;  ///< the last line of the undisturbed run
  const Disturbance& disturbance;
  Tally& tally;
  Rounds& rounds;
  std::function<void(const std::string&)> tell;  ///< gets the story of every attempt
};

constexpr const char* kRunsCompared = "finished and compared: all bytes equal";
constexpr const char* kResumes = "went on from a checkpoint";
constexpr const char* kOtherRanks = "on another number of ranks than before";

class RestartedRun {
 public:
  /// @param story  says what was going on last, for the message about a violation
  RestartedRun(World& world, const LifeDirectories& directories, const Dice& dice, std::string& story)
      : world_(world), directories_(directories), dice_(dice), story_(story), damage_(directories.run()) {}

  /// Starts the job again and again until it is done, then compares it with the undisturbed run.
  /// @throws Violation at the first broken promise
  void run() {
    while (!attempt()) continue;
  }

 private:
  /// One start. True when the run is done.
  bool attempt() {
    const bool strike = !dice_.percent(10) && world_.rounds.take();
    auto placement = world_.disturbance.place(dice_);
    if (damage_.is_owed_a_word()) placement.start = Placement::Start::kThreads;
    story_ = fmt::format("on {}, {}", placement.describe(), strike ? "disturbed" : "undisturbed");
    Attempt attempt(world_.job, placement, directories_);
    const auto ending = strike ? disturb(attempt) : let_finish(attempt);
    check_after(attempt, ending);
    damage_.check(attempt, world_.tally);
    if (ending == Ending::kDisturbed && world_.disturbance.damages_records)
      damage_.strike(dice_, world_.tally, story_);
    world_.tell(story_);
    if (ending == Ending::kDone) compare(attempt);
    return ending == Ending::kDone;
  }

  Ending disturb(Attempt& attempt) {
    const auto moment = random_moment(dice_, attempt.before().newest_checkpoint);
    story_ += fmt::format(" {}", moment.describe());
    if (!await(moment, attempt.process(), attempt.run_dir())) {
      world_.rounds.give_back();
      return let_finish(attempt);
    }
    return world_.disturbance.strike(attempt, dice_, world_.tally, story_);
  }

  Ending let_finish(Attempt& attempt) {
    const int code = attempt.wait();
    if (code == 0) return Ending::kDone;
    throw Violation(fmt::format("nobody disturbed it, and it ended with exit code {}", code));
  }

  void check_after(const Attempt& attempt, Ending ending) {
    const auto after = look_at(attempt.run_dir());
    check_resume(attempt, after);
    if (after.newest_checkpoint > 0) verify_checkpoints();
    if (ending == Ending::kDone && (after.saving || after.pruning)) {
      throw Violation("it is done, but a temporary directory is left in checkpoints/");
    }
  }

  /// The run went on from the newest checkpoint that was there, and that one is not lost.
  void check_resume(const Attempt& attempt, const RunFacts& after) {
    const auto newest = attempt.before().newest_checkpoint;
    const auto resumed = attempt.step_after("going on from step ");
    if (resumed && *resumed != newest) {
      throw Violation(
          fmt::format("went on from step {}, but the newest checkpoint was {}", *resumed, newest));
    }
    if (attempt.err().find("checkpoint before it") != std::string::npos) {
      throw Violation("a checkpoint was damaged:\n" + attempt.err());
    }
    const auto earlier_runs = count_earlier_runs(attempt.run_dir());
    if (earlier_runs > std::exchange(earlier_runs_, earlier_runs) && newest > 0) {
      throw Violation(
          fmt::format("started from the beginning although there was a checkpoint of step {}", newest));
    }
    if (after.newest_checkpoint < newest) {
      throw Violation(
          fmt::format("the newest checkpoint was {}, now it is {}", newest, after.newest_checkpoint));
    }
    if (!resumed) return;
    world_.tally.add(kResumes);
    if (std::exchange(last_ranks_, attempt.placement().ranks) != attempt.placement().ranks)
      world_.tally.add(kOtherRanks);
  }

  /// Every checkpoint under a final name is whole, whatever happened.
  void verify_checkpoints() {
    const auto report = directories_.home + "/verify";
    ChildProcess verify({world_.job.program(), "verify", directories_.run()}, {}, report, report + ".err");
    const auto code = verify.wait(std::chrono::minutes(1));
    if (code && *code == 0) return;
    throw Violation("a damaged checkpoint has its final name:\n" + testing::read_text(report) +
                    testing::read_text(report + ".err"));
  }

  /// run.keep is applied behind each save. After a kill between the last save and that, nothing is saved any
  /// more, and what should have gone is still there.
  void compare_kept(const std::vector<std::string>& kept, std::vector<std::string>* differences) {
    const auto& expected = world_.reference.checkpoints();
    if (kept == expected) return;
    differences->push_back(
        fmt::format("kept checkpoints: {}, reference: {}", fmt::join(kept, " "), fmt::join(expected, " ")));
  }

  void compare(const Attempt& attempt) {
    const WholeRecords whole{.metrics = damage_.is_whole("metrics.jsonl"),
                             .trail = damage_.is_whole("trail.bin")};
    const Result result(attempt.run_dir(), world_.job.steps(), whole);
    auto differences = result.differences_from(world_.reference, whole);
    if (world_.disturbance.keeps_checkpoint_set) compare_kept(result.checkpoints(), &differences);
    if (attempt.last_line() != world_.reference_hash) {
      differences.push_back("the last line of output is not '" + world_.reference_hash + "':\n" +
                            attempt.out());
    }
    if (!differences.empty()) {
      throw Violation(fmt::format("differs from the undisturbed run\n  {}", fmt::join(differences, "\n  ")));
    }
    world_.tally.add(kRunsCompared);
  }

  World& world_;
  const LifeDirectories& directories_;
  Dice dice_;
  std::string& story_;
  std::int64_t earlier_runs_ = 0;  ///< previous-N directories
  int last_ranks_ = 0;
  RecordDamage damage_;
};

/// Lives that are disturbed and go on, against a run that never was.
class RestartCampaign final : public FaultCampaign {
 public:
  RestartCampaign(const Options& options, const Disturbance& disturbance)
      : FaultCampaign(options, disturbance.name),
        disturbance_(disturbance),
        job_(options.program, scratch_.path(), disturbance.epochs, disturbance.normalises) {}

 private:
  void prepare() override {
    for (const auto& [title, labels] : disturbance_.sections) tally_.section(title, labels);
    tally_.section("runs", {kResumes, kOtherRanks, kRunsCompared});
    const auto directories = scratch_.make("reference");
    const std::string last_line = train_undisturbed(job_, directories);
    world_.emplace(World{.job = job_,
                         .reference = Result(directories.run(), job_.steps()),
                         .reference_hash = last_line,
                         .disturbance = disturbance_,
                         .tally = tally_,
                         .rounds = rounds_,
                         .tell = [this](const std::string& story) {
                           if (options_.verbose) tell(story);
                         }});
  }
  void live(std::int64_t /*number*/, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    RestartedRun(*world_, directories, dice, story).run();
  }

  const Disturbance& disturbance_;
  ChaosJob job_;
  std::optional<World> world_;
};

}  // namespace

void live_side_by_side(const Options& options, const std::function<bool()>& goes_on,
                       const std::function<void(std::int64_t)>& live) {
  if (options.only_life > 0) return live(options.only_life);
  std::atomic<std::int64_t> next{1};
  std::vector<std::thread> workers;
  for (int i = 0; i < options.jobs; ++i)
    workers.emplace_back([&] {
      while (goes_on()) live(next++);
    });
  for (auto& worker : workers) worker.join();
}

int run_campaign(const Options& options, const Disturbance& disturbance) {
  return RestartCampaign(options, disturbance).run();
}

void Tally::section(const std::string& title, const std::vector<std::string>& labels) {
  sections_.push_back({title, labels});
  for (const auto& label : labels) counts_.emplace(label, 0);
}

void Tally::add(const std::string& label) {
  const std::lock_guard lock(mutex_);
  const bool is_new = counts_.emplace(label, 0).second;
  if (is_new) sections_.push_back({"also seen", {label}});
  ++counts_[label];
}

void Tally::lost(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  lost_.push_back(steps);
}

std::string Tally::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& section : sections_) {
    text += section.title + "\n";
    for (const auto& label : section.labels) text += fmt::format("  {:<58}{:>6}\n", label, counts_.at(label));
  }
  if (lost_.empty()) return text;
  const auto sum = std::accumulate(lost_.begin(), lost_.end(), std::int64_t{0});
  text += fmt::format("steps lost by a kill\n  mean {:.1f}, most {}\n",
                      static_cast<double>(sum) / static_cast<double>(lost_.size()),
                      *std::max_element(lost_.begin(), lost_.end()));
  return text;
}

}  // namespace lockstep::chaos
