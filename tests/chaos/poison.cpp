// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A round. Train on 2 to 4 ranks while a bit of what one of them holds flips, or its processor errs, between
/// saves. The same command, or launch/run by itself, must then end in the calm run's weights, trail and sound
/// checkpoints, or refuse. A proof must refute whatever the ranks cannot see.
#include "common/machine.hpp"
#include "tests/chaos/fault_campaign.hpp"
#include "tests/support/prelude.hpp"

#include <fmt/ranges.h>

namespace lockstep::chaos {
namespace {

constexpr std::int64_t kStepsOfRun = 21;
/// Three epochs of seven steps; a grain for each of eight ranks.
const std::vector<std::string> kThreeEpochs = {"data.train_samples=420", "data.global_batch=64",
                                               "parallel.grain=8", "data.test_samples=20",
                                               "run.report=false"};
constexpr int kEndOfWrongRank = 72, kRefusal = 65;

/// A fault of a rank.
enum class Way {
  kState,   ///< its copy of the state: seen before anything is saved
  kTwice,   ///< in a step that no replay covers, and again in one that a replay does
  kUnseen,  ///< on one rank alone, or where no replay is: only a proof sees it
};
struct Poison {
  const char* label;
  const char* fault;  ///< a value of inject.what; {} is element and bit
  Way way = Way::kState;
  bool is_of_one_rank = false;
};
constexpr std::array kPoisons{
    Poison{"a bit of a weight", "flip-bit weights {}"},
    Poison{"a bit of what the optimiser remembers", "flip-bit momentum {}"},
    Poison{"a bit of running statistics", "flip-bit statistics {}"},
    Poison{"a bit of a summed gradient", "flip-bit gradient {}"},
    Poison{"a lane in two steps, the second replayed", "wrong-lane", Way::kTwice},
    Poison{"a lane, without replays: refuted by a proof", "wrong-lane", Way::kUnseen},
    Poison{"a weight of one rank alone: refuted by a proof", "flip-bit weights {}", Way::kUnseen, true},
    Poison{"momentum of one rank alone: the same", "flip-bit momentum {}", Way::kUnseen, true},
};
constexpr const char* kEndedCalm = "ended in the calm weights, trail and checkpoints";
constexpr const char* kRefused = "refused: all checkpoints in doubt";
constexpr const char* kByLaunchRun = "of them, by launch/run --restarts alone";
constexpr const char* kOfReplicas = "of them, on replicas of a pipeline";
constexpr const char* kOnDevices = "of them, on emulated devices";
constexpr const char* kRefuted = "refuted by lockstep prove";

/// A round of a life.
struct FlippedRun {
  const Poison& poison;
  Placement placement = {};
  bool by_launch_run = false;
  std::int64_t replays = 0, rank = 0;
  std::string run = {}, settings = {};
};

class PoisonCampaign final : public FaultCampaign {
 public:
  explicit PoisonCampaign(const Options& options)
      : FaultCampaign(options, "poison"),
        plain_(options.program, scratch_.path(), 3, false, kThreeEpochs),
        normalised_(options.program, scratch_.make("normalised").home, 3, true, kThreeEpochs) {}

 private:
  /// Running statistics are those of batch_norm, which a pipeline does not take.
  const ChaosJob& job_of(const FlippedRun& life) const {
    return life.placement.stages > 0 ? plain_ : normalised_;
  }

  void prepare() override {
    tally_.section("what went wrong on a rank between two saves", labels_of(kPoisons));
    tally_.section("how it ended", {kEndedCalm, kByLaunchRun, kOfReplicas, kOnDevices, kRefused, kRefuted});
    of_plain_ = train_reference(plain_, "reference");
    of_normalised_ = train_reference(normalised_, "normalised-reference");
  }

  void live(std::int64_t /*number*/, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    // Three of four are flips of the state.
    const auto kind = dice.percent(75) ? dice.between(0, 2) : dice.between(3, std::ssize(kPoisons) - 1);
    FlippedRun life{.poison = kPoisons[static_cast<std::size_t>(kind)], .run = directories.run()};
    place(life, dice);
    story = fmt::format("on {}{}, {}", life.placement.describe(),
                        life.by_launch_run ? " through launch/run" : "", life.settings);
    strike(life, dice, story);
  }

  void place(FlippedRun& life, Dice& dice) const {
    Placement& placement = life.placement;
    placement.ranks = life.poison.is_of_one_rank ? 1 : static_cast<int>(dice.between(2, 4));
    const auto way = dice.between(1, 100);
    placement.start = placement.ranks == 1 ? Placement::Start::kAlone
                      : way <= 50          ? Placement::Start::kThreads
                                           : Placement::Start::kMpirun;
    life.by_launch_run = way > 75 && placement.ranks > 1;
    // A pipeline has no statistics, and the sums on a device cannot be reached.
    const auto is_of = [&](const char* what) {
      return std::string(life.poison.fault).find(what) != std::string::npos;
    };
    const bool may_be_elsewhere = life.poison.way == Way::kState && !is_of("gradient");
    if (may_be_elsewhere && !is_of("statistics") && dice.percent(20)) {
      placement.ranks = 4;
      placement.stages = 2;
    } else if (may_be_elsewhere && dice.percent(10)) {
      placement.emulated = true;
      placement.ranks = 2;
    } else if (dice.percent(20)) {
      placement.threads = 2;
    }
    life.rank = dice.between(0, placement.ranks - 1);
    const bool replays =
        life.poison.way == Way::kTwice || (life.poison.way == Way::kState && dice.percent(40));
    life.replays = replays ? dice.between(3, 9) : 0;
    life.settings = fmt::format(
        "run.checkpoint_every_steps={} parallel.check_replicas_every_steps={} parallel.replay_every_steps={} "
        "run.keep.last={}",
        dice.between(1, 6), dice.percent(30) ? dice.between(1, 9) : 0, placement.ranks > 1 ? life.replays : 0,
        dice.between(1, 3));
  }

  /// Repeats the command after each exit code 72; at most as often as faults strike, and once more.
  void strike(const FlippedRun& life, Dice& dice, std::string& story) {
    const auto fault = [&](std::int64_t step, const std::string& what) {
      story += fmt::format(", {} on rank {} in step {}", what, life.rank, step);
      return injected(life.rank, step, what);
    };
    const bool is_float = life.poison.way == Way::kState &&
                          std::string(life.poison.fault).find("gradient") == std::string::npos;
    const auto most_bits = life.poison.way == Way::kUnseen ? 22 : is_float ? 31 : 62;
    const std::string what = aimed(life.poison.fault, dice, most_bits);
    // In an epoch's last step a rank may have no work.
    const auto step = dice.between(0, 2) * 7 + dice.between(1, 6);
    std::string command = fault(step, what);
    if (life.poison.way == Way::kTwice) {
      const auto replayed = (step / life.replays + 1) * life.replays;
      if (step % life.replays == 0 || replayed > kStepsOfRun || replayed % 7 == 0) return;
      const auto unseen =
          train_struck(life, fmt::format("train.max_steps={} {}", dice.between(step, replayed - 1), command));
      if (unseen.exit_code != 0)
        throw Violation("a step that is not replayed was judged:\n" + unseen.everything());
      command = fault(replayed, what);
    }
    auto outcome = train_struck(life, command);
    if (life.poison.way == Way::kUnseen) {
      if (outcome.exit_code != 0) throw Violation("the run was not to see it:\n" + outcome.everything());
      return expect_refuted(life);
    }
    const std::string named = fmt::format("rank {} on {} (", life.rank, host_name());
    if (outcome.err.find(named) == std::string::npos)
      throw Violation("expected: " + named + "\n" + outcome.everything());
    if (outcome.exit_code == kEndOfWrongRank) outcome = train_struck(life, command);
    expect_calm(life, outcome);
  }

  void expect_calm(const FlippedRun& life, const testing::Outcome& last) {
    const auto verified = start(fmt::format("{} verify {}", options_.program, life.run));
    if (last.exit_code == kRefusal &&
        last.err.find("all its checkpoints are in doubt") != std::string::npos) {
      if (verified.exit_code != kRefusal) throw Violation("verify says nothing:\n" + verified.everything());
      if (rounds_.take()) tally_.add(life.poison.label), tally_.add(kRefused);
      return;
    }
    const Reference& reference = &job_of(life) == &plain_ ? of_plain_ : of_normalised_;
    const bool is_calm = last.exit_code == 0 && last.last_line() == reference.last_line &&
                         testing::read_text(life.run + "/trail.bin") == reference.trail;
    if (!is_calm || verified.exit_code != 0)
      throw Violation(
          fmt::format("expected {}\n{}{}", reference.last_line, last.everything(), verified.everything()));
    if (!rounds_.take()) return;
    tally_.add(life.poison.label);
    tally_.add(kEndedCalm);
    if (life.by_launch_run) tally_.add(kByLaunchRun);
    if (life.placement.stages > 0) tally_.add(kOfReplicas);
    if (life.placement.emulated) tally_.add(kOnDevices);
  }

  void expect_refuted(const FlippedRun& life) {
    const auto proof = start(fmt::format("{} prove {} --device cpu", options_.program, life.run));
    if (proof.exit_code != 1) throw Violation("a proof was to refute it:\n" + proof.everything());
    if (rounds_.take()) tally_.add(life.poison.label), tally_.add(kRefuted);
  }

  /// This host has two names: one stays when the other is left out. Open MPI is not told of them.
  std::string launch_run(const FlippedRun& life) const {
    const char* source = std::getenv("LOCKSTEP_SOURCE_DIR");  // NOLINT(concurrency-mt-unsafe)
    if (source == nullptr) throw std::runtime_error("LOCKSTEP_SOURCE_DIR is not set: use tests/chaos/run");
    const std::string hosts = life.run + ".hosts", launcher = life.run + ".mpirun";
    testing::write_text(
        hosts, fmt::format("localhost slots={0}\n{1} slots={0}\n", life.placement.ranks, host_name()));
    testing::write_text(
        launcher,
        "#!/bin/sh\nif [ \"$3\" = --hostfile ]; then np=$2; shift 4; set -- -np \"$np\" \"$@\"; fi\n"
        "exec mpirun \"$@\"\n");
    std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
    return fmt::format("MPIRUN={} {}/launch/run -np {} --hostfile {} --restarts 3 ", launcher, source,
                       life.placement.ranks, hosts);
  }

  testing::Outcome train_struck(const FlippedRun& life, const std::string& more) const {
    Placement placement = life.placement;
    if (life.by_launch_run) placement.start = Placement::Start::kAlone;
    auto command = job_of(life).train_command(placement, life.run);
    if (life.by_launch_run) command.erase(command.begin());
    return start(fmt::format("{}{} {} {}", life.by_launch_run ? launch_run(life) : "",
                             fmt::join(command, " "), life.settings, more));
  }

  ChaosJob plain_, normalised_;
  Reference of_plain_, of_normalised_;
};

}  // namespace

int run_poison_campaign(const Options& options) {
  return PoisonCampaign(options).run();
}

}  // namespace lockstep::chaos
