// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A round: train on 2 to 8 ranks while numbers of one of them become wrong. The run must stop before they move a
/// weight, and name that rank, its host and what was at fault. As many honest runs must end with the reference's trail.
#include "common/machine.hpp"
#include "tests/chaos/fault_campaign.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {
namespace {

constexpr std::int64_t kStepsTaken = 7;
/// A grain for each of eight ranks; the last batch leaves some without work.
const std::vector<std::string> kEightGrains = {"data.train_samples=420", "data.global_batch=64",
                                               "parallel.grain=8", "data.test_samples=20"};
constexpr int kWrongRank = 72;
constexpr const char* kNoAlarm = "nowhere: no alarm, and the reference's trail";
constexpr const char* kNoAlarmOfReplays = "the same, every step computed again by another rank";
constexpr const char* kUnseenPixel = "a training sample, in pixels that no number depends on (not a round)";

constexpr const char* kOfPipelines = "of the faults, on ranks of pipelines";
constexpr const char* kWithBatchNorm = "of the faults, in networks with batch_norm";
constexpr const char* kWithThreads = "of the faults, on ranks of two threads";

/// Observer of a fault.
enum class Seen {
  kAlways,
  kBetweenStages,    ///< on ranks of pipelines
  kByReplay,         ///< on CPUs, where another rank has the same layers
  kByThree,          ///< as kByReplay, and a third rank must decide
  kByThreeProcesses  ///< as kByThree, in processes with memory of their own
};

/// Fault of a rank, and the name that the run gives it.
struct WrongThing {
  const char* label;
  const char* fault;     ///< value of inject.what; {} is element and bit
  const char* in_front;  ///< text before the rank in the message
  const char* behind;
  Seen seen = Seen::kAlways;
  int most_bits = 62;
};
constexpr const char* kSent = "sent other sums of";
constexpr const char* kArrived = "what arrived at ";
constexpr const char* kNotTheSum = "is not the sum of";
constexpr const char* kNotTheMessage = " sent: a link or memory at its end changed it";
constexpr const char* kWeights = "its weights are not those of the others";
constexpr const char* kSamples = "its training samples are not those of the others";
constexpr const char* kProcessor = "its processor computed wrongly";
constexpr int kBitsOfSums = 48;  // higher bits of several sums may cancel modulo 2^64 (docs/trail-format.md)
constexpr int kMantissaBits = 22;  // a weight that is not a number fails the step
constexpr std::array kThings{
    WrongThing{"a bit of its sums in memory", "flip-bit sums {}", "", kSent},
    WrongThing{"four bits of a sum in memory", "flip-bits sums {}", "", kSent},
    WrongThing{"a stuck bit in every 32nd sum", "stuck-bit sums {}", "", kSent, Seen::kAlways, kBitsOfSums},
    WrongThing{"a bit of what arrives", "flip-bit link {}", kArrived, kNotTheSum},
    WrongThing{"four bits of what arrives", "flip-bits link {}", kArrived, kNotTheSum},
    WrongThing{"a stuck bit in what arrives", "stuck-bit link {}", kArrived, kNotTheSum, Seen::kAlways,
               kBitsOfSums},
    WrongThing{"a stale message", "stale-message", kArrived, kNotTheSum},
    WrongThing{"a message whose halves are swapped", "swapped-message", kArrived, kNotTheSum},
    WrongThing{"a bit of a message between stages", "flip-bit message {}", kArrived, kNotTheMessage,
               Seen::kBetweenStages},
    WrongThing{"four bits of a message between stages", "flip-bits message {}", kArrived, kNotTheMessage,
               Seen::kBetweenStages},
    WrongThing{"a bit of a weight", "flip-bit weights {}", "", kWeights, Seen::kByThree, kMantissaBits},
    WrongThing{"a stuck bit in every 32nd weight", "stuck-bit weights {}", "", kWeights, Seen::kByThree,
               kMantissaBits},
    WrongThing{"bits of a training sample", "flip-bits data {}", "", kSamples, Seen::kByThreeProcesses},
    WrongThing{"a wrong forward pass", "wrong-forward", "", kProcessor, Seen::kByReplay},
    WrongThing{"a wrong result of one lane", "wrong-lane", "", kProcessor, Seen::kByReplay},
};

/// Two stages, each of which has weights; or, to send messages, up to three.
void make_pipelines(Placement& placement, Seen seen, Dice& dice) {
  const bool by_three = seen == Seen::kByThree || seen == Seen::kByThreeProcesses;
  placement.stages = seen == Seen::kBetweenStages ? static_cast<int>(dice.between(2, 3)) : 2;
  const int least = by_three ? 3 : seen == Seen::kBetweenStages ? 1 : 2;
  placement.ranks = placement.stages * static_cast<int>(dice.between(least, 8 / placement.stages));
}

Placement place(Seen seen, Dice& dice) {
  Placement placement;
  const int least = seen == Seen::kByThree || seen == Seen::kByThreeProcesses ? 3 : 2;
  placement.ranks = static_cast<int>(dice.between(least, 8));
  placement.start = seen != Seen::kByThreeProcesses && dice.percent(70) ? Placement::Start::kThreads
                                                                        : Placement::Start::kMpirun;
  const bool may_be_emulated =
      seen == Seen::kAlways || seen == Seen::kBetweenStages || seen == Seen::kByThree;
  if (seen == Seen::kBetweenStages || dice.percent(30)) {
    make_pipelines(placement, seen, dice);
    placement.emulated = seen == Seen::kBetweenStages && dice.percent(10);
  } else if (may_be_emulated && dice.percent(15)) {
    placement.emulated = true;
    placement.ranks = static_cast<int>(dice.between(least, 4));
  } else if (dice.percent(30)) {
    placement.threads = 2;
  }

  return placement;
}

std::string replays(Seen seen) {
  return seen == Seen::kAlways || seen == Seen::kBetweenStages ? "" : "parallel.replay_every_steps=1";
}

class WrongRankCampaign final : public FaultCampaign {
 public:
  explicit WrongRankCampaign(const Options& options)
      : FaultCampaign(options, "wrong-rank"),
        plain_{ChaosJob(options.program, scratch_.path(), 1, false, kEightGrains)},
        normalised_{ChaosJob(options.program, scratch_.make("normalised").home, 1, true, kEightGrains)} {}

 private:
  /// A job, and the trail of one rank.
  struct Trained {
    ChaosJob job;
    std::string reference_trail = {};
  };
  /// A round of a life.
  struct Round {
    const Trained& trained;
    const WrongThing& thing;
    Placement placement;
    std::string run;
  };

  void prepare() override {
    tally_.section("what went wrong on a rank; rank, host, step and kind were named", labels_of(kThings));
    tally_.section("beside them",
                   {kOfPipelines, kWithBatchNorm, kWithThreads, kNoAlarm, kNoAlarmOfReplays, kUnseenPixel});
    plain_.reference_trail = train_reference(plain_.job, "reference").trail;
    normalised_.reference_trail = train_reference(normalised_.job, "normalised-reference").trail;
  }

  /// Every second one is honest.
  void live(std::int64_t number, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    const auto& thing = kThings[static_cast<std::size_t>(dice.between(0, std::ssize(kThings) - 1))];
    const Placement placement = place(thing.seen, dice);
    // batch_norm needs the whole batch at once, which a pipeline never has.
    const Trained& trained = placement.stages == 0 && dice.percent(30) ? normalised_ : plain_;
    const Round round{trained, thing, placement, directories.run()};
    story = "on " + placement.describe() + (&trained == &normalised_ ? ", with batch_norm" : "");
    if (number % 2 != 0) return train_wrongly(round, dice, story);
    train_honestly(round);
    tally_.add(replays(thing.seen).empty() ? kNoAlarm : kNoAlarmOfReplays);
  }

  void train_honestly(const Round& round) {
    const auto outcome = train(round.trained.job, round.placement, round.run, replays(round.thing.seen));
    if (outcome.exit_code != 0) throw Violation("an honest run failed:\n" + outcome.everything());
    if (testing::read_text(round.run + "/trail.bin") != round.trained.reference_trail)
      throw Violation("an honest run left another trail than the reference");
  }

  void train_wrongly(const Round& round, Dice& dice, std::string& story) {
    const WrongThing& thing = round.thing;
    const Placement& placement = round.placement;
    auto rank = dice.between(0, placement.ranks - 1);
    const auto step = dice.between(1, thing.seen == Seen::kAlways ? kStepsTaken : kStepsTaken - 1);
    // Skip to the first stage of a pipeline, which reads the samples.
    if (thing.seen == Seen::kByThreeProcesses && placement.stages > 0) rank -= rank % placement.stages;
    const std::string fault = aimed(thing.fault, dice, thing.most_bits);
    story += fmt::format(", {} on rank {} in step {}", fault, rank, step);
    const auto outcome = train(round.trained.job, placement, round.run,
                               injected(rank, step, fault) + " " + replays(thing.seen));
    const std::string said =
        fmt::format("step {}: {}rank {} on {} (", step, thing.in_front, rank, host_name());
    const std::size_t named = outcome.err.find(said);
    const bool is_right = outcome.exit_code == kWrongRank && named != std::string::npos &&
                          outcome.err.find(thing.behind, named) != std::string::npos &&
                          outcome.err.find(" and rank ", named) == std::string::npos;
    if (is_right && rounds_.take()) return count(round);
    const bool has_no_trace = thing.seen == Seen::kByThreeProcesses && outcome.exit_code == 0 &&
                              testing::read_text(round.run + "/trail.bin") == round.trained.reference_trail;
    if (has_no_trace) return tally_.add(kUnseenPixel);
    if (!is_right)
      throw Violation(fmt::format("expected exit code {} and: {}... {}\n{}", kWrongRank, said, thing.behind,
                                  outcome.everything()));
  }

  void count(const Round& round) {
    tally_.add(round.thing.label);
    if (round.placement.stages > 0) tally_.add(kOfPipelines);
    if (round.placement.threads > 1) tally_.add(kWithThreads);
    if (&round.trained == &normalised_) tally_.add(kWithBatchNorm);
  }

  Trained plain_, normalised_;
};

}  // namespace

int run_wrong_rank_campaign(const Options& options) {
  return WrongRankCampaign(options).run();
}

}  // namespace lockstep::chaos
