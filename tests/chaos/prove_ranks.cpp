// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A round. Train on 2 to 8 ranks while numbers of one of them become wrong, by faults that no step sees: the run ends
/// before its next save, or not at all. Then one rank proves it, and must name the step, that rank and its host.
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "tests/chaos/fault_campaign.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {
namespace {

/// Two epochs of seven steps; a grain for each of eight ranks; the last batch leaves some without work.
const std::vector<std::string> kTwoEpochs = {
    "data.train_samples=420", "data.global_batch=64",         "parallel.grain=8",
    "data.test_samples=20",   "run.checkpoint_every_steps=0", "parallel.check_replicas_every_steps=0"};
constexpr std::int64_t kEpochsProved = 2, kStepsOfAnEpoch = 7;
constexpr const char* kPixelWithoutTrace =
    "a training sample, in pixels that no number depends on (not a round)";

/// Fault of a rank.
struct UnseenThing {
  const char* label;
  const char* fault;             ///< value of inject.what; {} is element and bit
  bool needs_processes = false;  ///< threads share the samples
  bool on_devices = false;       ///< reaches a device, too, and ranks of pipelines
};
constexpr const char* kOnPipelines = "of them, on ranks of pipelines";
constexpr std::array kUnseenThings{
    UnseenThing{"a bit of a weight", "flip-bit weights {}", false, true},
    UnseenThing{"a stuck bit in every 32nd weight", "stuck-bit weights {}", false, true},
    UnseenThing{"a bit of its momentum", "flip-bit momentum {}", false, true},
    UnseenThing{"a bit of the sums behind their comparison", "flip-bit gradient {}"},
    UnseenThing{"bits of a training sample", "flip-bits data {}", true},
    UnseenThing{"a wrong forward pass", "wrong-forward"},
    UnseenThing{"a wrong result of one lane", "wrong-lane"},
};

class ProveRanksCampaign final : public FaultCampaign {
 public:
  explicit ProveRanksCampaign(const Options& options)
      : FaultCampaign(options, "prove-ranks"),
        job_(options.program, scratch_.path(), kEpochsProved, false, kTwoEpochs) {}

 private:
  void prepare() override {
    tally_.section("what went wrong on a rank; step, rank and host were named by the proof",
                   labels_of(kUnseenThings));
    tally_.section("beside them", {kOnPipelines, kPixelWithoutTrace});
  }

  void live(std::int64_t /*number*/, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    const auto& thing =
        kUnseenThings[static_cast<std::size_t>(dice.between(0, std::ssize(kUnseenThings) - 1))];
    const Placement placement = place(thing, dice);
    const auto rank = dice.between(0, placement.ranks - 1);
    // In an epoch's last step a rank may have no work.
    const auto step =
        dice.between(0, kEpochsProved - 1) * kStepsOfAnEpoch + dice.between(1, kStepsOfAnEpoch - 1);
    constexpr int kMantissaBits = 22;  // higher bits may make infinities or NaN, which fail the step
    const std::string fault = aimed(thing.fault, dice, kMantissaBits);
    story = fmt::format("on {}, {} on rank {} in step {}", placement.describe(), fault, rank, step);
    const auto outcome = train(job_, placement, directories.run(), injected(rank, step, fault));
    constexpr int kCopiesDiffer = 72;  // exit code: copies are compared before an evaluation
    if (outcome.exit_code != 0 && outcome.exit_code != kCopiesDiffer)
      throw Violation("the run was not to see it:\n" + outcome.everything());
    prove(directories.run(), thing, placement, step, rank);
  }

  Placement place(const UnseenThing& thing, Dice& dice) const {
    Placement placement;
    placement.ranks = static_cast<int>(dice.between(2, 8));
    const bool as_threads = !thing.needs_processes && dice.percent(70);
    placement.start = as_threads ? Placement::Start::kThreads : Placement::Start::kMpirun;
    if (thing.on_devices && dice.percent(40)) {
      placement.stages = 2;
      placement.ranks = 2 * static_cast<int>(dice.between(1, 4));
      return placement;
    }
    if (dice.percent(20)) placement.threads = 2;
    if (!thing.on_devices || !dice.percent(15)) return placement;
    placement.emulated = true;
    placement.ranks = static_cast<int>(dice.between(2, 4));
    return placement;
  }

  void prove(const std::string& run, const UnseenThing& thing, const Placement& placement, std::int64_t step,
             std::int64_t rank) {
    const auto proof = start(fmt::format("{} prove {} --json --device cpu", options_.program, run));
    if (proof.exit_code == 0 && thing.needs_processes) return tally_.add(kPixelWithoutTrace);
    const auto verdict = parse_json_or_discard(proof.out);
    const auto first = verdict.value("/refuted/0"_json_pointer, nlohmann::json::object());
    const bool is_right = proof.exit_code == 1 && first.value("step", 0) == step &&
                          first.value("rank", -1) == rank && first.value("host", "") == host_name();
    if (!is_right)
      throw Violation(
          fmt::format("expected step {}, rank {} on {}\n{}", step, rank, host_name(), proof.everything()));
    if (!rounds_.take()) return;
    tally_.add(thing.label);
    if (placement.stages > 0) tally_.add(kOnPipelines);
  }

  ChaosJob job_;
};

}  // namespace

int run_prove_ranks_campaign(const Options& options) {
  return ProveRanksCampaign(options).run();
}

}  // namespace lockstep::chaos
