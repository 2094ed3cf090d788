// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A round: train with a fault, or damage a file of an honest run, or do neither. Then prove, on another number
/// of ranks. Where the bit went, and in which step it first shows in the trail, is known from elsewhere than the
/// verdict. Or forge a number in a file of an honest run, with its checksums: then it must be refuted.
#include "common/json_text.hpp"
#include "tests/chaos/fault_campaign.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {
namespace {

namespace fs = std::filesystem;

// Short runs, of which a thousand are quick. The last of four grains of the last batch is small, and
// checkpoints stand behind steps 6, 12 and 13.
constexpr std::int64_t kSteps = 13;
const std::vector<std::string> kShortRun = {"data.train_samples=770", "data.test_samples=20",
                                            "run.print_loss_every_steps=3"};

constexpr const char* kHonest = "nowhere: proved";
constexpr const char* kNoTrace = "data, in a pixel that no number depends on: proved (not a round)";
constexpr const char* kFailedStep = "the run stopped at that step itself: NaN or infinity (not a round)";
constexpr const char* kExact = "of weights, momentum and gradients: parameter and bit named, too";

/// Lives from this number on have a forged file in place of a flipped bit.
constexpr std::int64_t kFirstForgery = 1'000'000;
/// A proof of a forgery takes no longer.
constexpr int kMostSeconds = 60;

/// Places of a flipped bit.
struct FlippedAt {
  const char* label;
  const char* fault;  ///< value of inject.what; null: the bit is in a file of the finished run
};
constexpr FlippedAt kPlaces[] = {{"weights", "weights"}, {"momentum", "momentum"}, {"gradient", "gradient"},
                                 {"data", "data"},       {"trail", nullptr},       {"checkpoint", nullptr}};

/// Starts at byte of its first record; bytes of each.
struct TrailShape {
  std::uint32_t head = 0, record = 0;
};

TrailShape shape_of(const std::string& trail) {
  TrailShape shape;
  if (trail.size() < 20) throw Violation("the run left no trail");
  std::memcpy(&shape.head, trail.data() + 12, sizeof shape.head);
  std::memcpy(&shape.record, trail.data() + 16, sizeof shape.record);
  return shape;
}

std::int64_t steps_in(const std::string& trail) {
  const TrailShape shape = shape_of(trail);
  return (static_cast<std::int64_t>(trail.size()) - shape.head) / shape.record;
}

/// The first step whose record differs; 0: none of those that both have.
std::int64_t first_differing_step(const std::string& a, const std::string& b) {
  const std::size_t common = std::min(a.size(), b.size());
  const auto [at, other] =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
  const auto byte = static_cast<std::size_t>(at - a.begin());
  if (byte == common) return 0;
  const TrailShape shape = shape_of(a);
  if (byte < shape.head) throw Violation("the heads of two trails of one job differ");
  return static_cast<std::int64_t>((byte - shape.head) / shape.record) + 1;
}

void flip_in_file(const std::string& path, std::uint64_t byte, unsigned bit) {
  std::string bytes = testing::read_text(path);
  bytes[byte] = static_cast<char>(static_cast<unsigned char>(bytes[byte]) ^ (1U << bit));
  testing::write_text(path, bytes);
}

/// Expected verdict.
struct Expected {
  std::int64_t step = 0;  ///< 0: proved
  std::string what;       ///< empty: any
  std::optional<int> bit;
  std::int64_t steps_of_run = kSteps;
};

/// An undamaged run, made when it is first asked for: copies of it are damaged.
struct HonestRun {
  std::once_flag made;
  std::string directory, story;
};

class ProveCampaign final : public FaultCampaign {
 public:
  explicit ProveCampaign(const Options& options)
      : FaultCampaign(options, "prove"), job_(options.program, scratch_.path(), 1, true, kShortRun) {}

 private:
  void prepare() override {
    tally_.section("a bit was flipped, and the step was named", labels_of(kPlaces));
    if (options_.forgeries > 0) tally_.section("a file was forged, and the run refuted", forgery_labels());
    tally_.section("beside them", {kHonest, kNoTrace, kFailedStep, kExact});
    const auto directories = scratch_.make("reference");
    Dice dice(options_.seed, 0);
    std::string story;
    reference_trail_ = train(directories.run(), dice, "", story);
  }

  void live(std::int64_t number, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    if (number >= kFirstForgery) return forge_and_prove(directories, dice, story);
    disturb_and_prove(number, directories, dice, story);
  }

  void live_all() override {
    FaultCampaign::live_all();
    if (options_.only_life > 0) return;
    std::atomic<std::int64_t> forged{0};
    live_side_by_side(
        options_, [&] { return !broke_a_promise() && forged++ < options_.forgeries; },
        [this](std::int64_t number) { live_one(kFirstForgery + number - 1); });
  }

  /// A hundred honest runs beside a thousand others.
  void disturb_and_prove(std::int64_t number, const LifeDirectories& directories, Dice& dice,
                         std::string& story) {
    if (number % 11 == 0) {
      train_honestly(directories.run(), dice, story);
      prove(directories.run(), {}, dice, story);
      return tally_.add(kHonest);
    }
    const FlippedAt& place = kPlaces[dice.between(0, std::ssize(kPlaces) - 1)];
    const Expected expected = disturb(place, directories, dice, story);
    if (expected.steps_of_run > 0) prove(directories.run(), expected, dice, story);
    if (expected.step == 0) return tally_.add(expected.steps_of_run < kSteps ? kFailedStep : kNoTrace);
    if (!rounds_.take()) return;
    tally_.add(place.label);
    if (expected.bit) tally_.add(kExact);
  }

  /// Accepts any step in the verdict: some forgeries show in more than one place.
  void forge_and_prove(const LifeDirectories& directories, Dice& dice, std::string& story) {
    copy_honest_run(directories.run(), dice, story);
    const auto label = dice.pick(forgery_labels());
    story += ", forged: " + forge(label, directories.run(), dice);
    const auto ranks = dice.between(1, 3);
    story += fmt::format(", proved by {} rank{}", ranks, ranks == 1 ? "" : "s");
    const auto outcome = testing::run_shell(
        fmt::format("{} prove {} --json --ranks {}", options_.program, directories.run(), ranks),
        kMostSeconds);
    if (outcome.exit_code != 1) throw Violation("it was not refuted:\n" + outcome.everything());
    tally_.add(label);
  }

  Expected disturb(const FlippedAt& place, const LifeDirectories& directories, Dice& dice,
                   std::string& story) {
    if (place.fault != nullptr) return train_with_fault(place, directories.run(), dice, story);
    copy_honest_run(directories.run(), dice, story);
    const bool is_trail = std::string(place.label) == "trail";
    return is_trail ? damage_trail(directories.run(), dice, story)
                    : damage_checkpoint(directories.run(), dice, story);
  }

  Expected damage_trail(const std::string& run, Dice& dice, std::string& story) const {
    const TrailShape shape = shape_of(testing::read_text(run + "/trail.bin"));
    const auto step = dice.between(1, kSteps);
    const auto byte = dice.between(0, shape.record - 1);
    story += fmt::format(", byte {} of the record of step {}", byte, step);
    flip_in_file(run + "/trail.bin",
                 shape.head + static_cast<std::uint64_t>((step - 1) * shape.record + byte),
                 static_cast<unsigned>(dice.between(0, 7)));
    return {.step = step, .what = "trail", .bit = {}};
  }

  Expected damage_checkpoint(const std::string& run, Dice& dice, std::string& story) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(run + "/checkpoints"))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::ranges::sort(files);
    const auto& file = dice.pick(files);
    const auto byte = dice.between(0, static_cast<std::int64_t>(fs::file_size(file)) - 1);
    story += fmt::format(", byte {} of {}", byte, file);
    flip_in_file(file, static_cast<std::uint64_t>(byte), static_cast<unsigned>(dice.between(0, 7)));
    const std::string name = fs::path(file).parent_path().filename();
    return {.step = std::stoll(name.substr(name.find('-') + 1)), .what = "checkpoint", .bit = {}};
  }

  Expected train_with_fault(const FlippedAt& place, const std::string& run, Dice& dice,
                            std::string& story) const {
    const auto step = dice.between(1, kSteps);
    const bool is_gradient = std::string(place.fault) == "gradient",
               is_data = std::string(place.fault) == "data";
    const auto bit = static_cast<int>(dice.between(0, is_gradient ? 63 : is_data ? 7 : 31));
    bool stopped = false;
    const auto trail = train(run, dice,
                             fmt::format("inject.step={} 'inject.what=flip-bit {} {}:{}'", step, place.fault,
                                         dice.between(0, 1'000'000), bit),
                             story, &stopped);
    const auto seen = first_differing_step(trail, reference_trail_);
    // A step that failed leaves no record, so there is nothing to refute.
    if (stopped && seen == 0 && steps_in(trail) == step - 1)
      return {.step = 0, .what = "", .bit = {}, .steps_of_run = step - 1};
    if (is_data) return {.step = seen, .what = seen == 0 ? "" : "gradient", .bit = {}};
    if (seen != step)
      throw Violation(
          fmt::format("the bit was flipped before step {}, and shows in the trail at {}", step, seen));
    return {
        .step = step, .what = std::string(place.fault) == "momentum" ? "optimizer" : place.fault, .bit = bit};
  }

  /// One to four ranks, under mpirun or as threads; the rank of a fault is among them.
  /// @param stopped  set where a number became NaN or infinite, or ranks differed, which ends a run; null: that must not
  ///                 be
  std::string train(const std::string& run, Dice& dice, const std::string& more, std::string& story,
                    bool* stopped = nullptr) const {
    Placement placement;
    placement.ranks = static_cast<int>(dice.between(1, 4));
    placement.threads = dice.percent(25) ? 2 : 1;
    placement.start = dice.percent(88) ? Placement::Start::kThreads : Placement::Start::kMpirun;
    const auto rank = dice.between(0, placement.ranks - 1);
    story += fmt::format("on {}", placement.describe());
    std::string settings = dice.percent(50) ? "parallel.check_replicas_every_steps=0" : "";
    if (!more.empty()) {
      settings += fmt::format(" inject.rank={} {}", rank, more);
      story += fmt::format(", {} on rank {}", more, rank);
    }
    const auto outcome = FaultCampaign::train(job_, placement, run, settings);
    constexpr int kRanksDiffer = 72;  // before a save
    const bool differ = outcome.exit_code == kRanksDiffer;
    if (outcome.exit_code != 0 && (more.empty() || (outcome.exit_code != 70 && !differ)))
      throw Violation("training failed:\n" + outcome.everything());
    if (stopped != nullptr) *stopped = differ || outcome.err.find("NaN or infinite; ") != std::string::npos;
    return testing::read_text(run + "/trail.bin");
  }

  void train_honestly(const std::string& run, Dice& dice, std::string& story) const {
    if (train(run, dice, "", story) != reference_trail_)
      throw Violation("an honest run left another trail than the reference");
  }

  void copy_honest_run(const std::string& run, Dice& dice, std::string& story) {
    const auto number = dice.between(0, std::ssize(honest_) - 1);
    HonestRun& honest = honest_[static_cast<std::size_t>(number)];
    std::call_once(honest.made, [&] {
      honest.directory = scratch_.make(fmt::format("honest-{}", number)).run();
      Dice dice_of_it(options_.seed, -1 - number);
      train_honestly(honest.directory, dice_of_it, honest.story);
      // A forgery is found only if nothing else is.
      if (options_.forgeries > 0) prove(honest.directory, {}, dice_of_it, honest.story);
    });
    fs::copy(honest.directory, run, fs::copy_options::recursive);
    story += honest.story + fmt::format(" (honest run {})", number);
  }

  void prove(const std::string& run, const Expected& expected, Dice& dice, std::string& story) const {
    const auto ranks = dice.between(1, 4);
    story += fmt::format(", proved by {} rank{}", ranks, ranks == 1 ? "" : "s");
    std::string command = fmt::format("{} prove {} --json", options_.program, run);
    if (ranks > 1) command += fmt::format(" --ranks {}", ranks);
    const auto outcome = start(command);
    if (outcome.exit_code != (expected.step == 0 ? 0 : 1))
      throw Violation("wrong exit code:\n" + outcome.everything());
    const auto verdict = parse_json(outcome.out);
    if (expected.step == 0) {
      if (verdict.at("verdict") != "proved" || verdict.at("steps_proved") != expected.steps_of_run)
        throw Violation("an honest run is not proved:\n" + outcome.everything());
      return;
    }
    const auto& first = verdict.at("refuted").at(0);
    if (first.at("step") != expected.step || (!expected.what.empty() && first.at("what") != expected.what))
      throw Violation(
          fmt::format("expected {} at step {}:\n{}", expected.what, expected.step, outcome.everything()));
    if (!expected.bit) return;
    if (!first.contains("bit") || first.at("bit") != *expected.bit || !first.contains("parameter"))
      throw Violation(fmt::format("expected bit {}:\n{}", *expected.bit, outcome.everything()));
  }

  ChaosJob job_;
  std::string reference_trail_;
  std::array<HonestRun, 16> honest_;
};

}  // namespace

int run_prove_campaign(const Options& options) {
  return ProveCampaign(options).run();
}

}  // namespace lockstep::chaos
