// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Power lost at every point of a save. What is found afterwards is a good checkpoint, the old one or the new
/// one.
#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

namespace lockstep {
namespace {

/// Losses of a disk: every combination of PowerLoss::variant(), 20 of them, so often.
constexpr std::uint32_t kVariants = 20 * test::effort(8, 1);

std::optional<FoundCheckpoint> recover(MemoryEnv& env) {
  return find_latest(env, kRun, [](const std::string&) {});
}

/// Steps before the power may fail, steps then, and possible results.
struct Scenario {
  std::vector<CheckpointState> before;  ///< saved and durable; the last is the newest good one
  CheckpointState saved;
  KeepPolicy keep;
};

/// A disk with the earlier checkpoints, all synced.
MemoryDisk prepare(const Scenario& scenario) {
  RunEnv env;
  for (const CheckpointState& state : scenario.before) save_checkpoint(env, kRun, state);
  return env.disk();
}

/// A checkpoint gets its name when it is complete, and loses it before it is taken apart.
void expect_named_ones_are_whole(MemoryEnv& env) {
  for (const CheckpointEntry& entry : list_checkpoints(env, kRun)) {
    const bool aside = entry.path.ends_with(kReplacedSuffix);
    ASSERT_TRUE(aside || verify_checkpoint(env, entry.path).empty()) << entry.path << " is not whole";
  }
}

/// After the loss: an allowed checkpoint is found, what is left over goes, and the run can save again.
void expect_recovers(const Scenario& scenario, MemoryEnv& env, bool finished) {
  const auto found = recover(env);
  const bool is_new = found && same(found->state, scenario.saved);
  const bool is_old = found ? !scenario.before.empty() && same(found->state, scenario.before.back())
                            : scenario.before.empty();
  ASSERT_TRUE(is_new || (is_old && !finished)) << (found ? "found " + found->path : "no checkpoint found")
                                               << (finished ? " after the save had returned" : "");
  expect_named_ones_are_whole(env);
  remove_leftovers(env, kRun);
  save_checkpoint(env, kRun, scenario.saved);
  const auto again = recover(env);
  ASSERT_TRUE(again && same(again->state, scenario.saved)) << "the next save failed";
}

/// Tries losses, which often leave equal disks: each is looked at once while the save runs, and once after
/// it.
/// @returns the number of losses
std::size_t lose_power_everywhere(const Scenario& scenario) {
  const MemoryDisk base = prepare(scenario);
  MemoryEnv env(base);
  save_checkpoint(env, kRun, scenario.saved);
  const std::size_t saved_at = env.trace().size();
  prune_checkpoints(env, kRun, scenario.keep);
  const std::vector<DiskOp> trace = env.trace();

  std::size_t losses = 0;
  std::set<std::pair<bool, MemoryDisk>> seen;
  for (std::size_t length = 0; length <= trace.size(); ++length) {
    const bool finished = length >= saved_at;
    for (std::uint32_t variant = 0; variant < kVariants; ++variant, ++losses) {
      const auto [state, is_new] = seen.emplace(
          finished, after_power_loss(base, std::span(trace).first(length), PowerLoss::variant(variant)));
      if (!is_new) continue;
      MemoryEnv found(state->second);
      SCOPED_TRACE("after " + std::to_string(length) + " of " + std::to_string(trace.size()) +
                   " operations, variant " + std::to_string(variant));
      expect_recovers(scenario, found, finished);
      if (::testing::Test::HasFatalFailure()) return losses;
    }
  }
  return losses;
}

TEST(PowerLossTest, SaveLeavesTheOldOrTheNewCheckpointAndPruningNeverTakesTheLastGoodOne) {
  CheckpointState other = make_state(100);
  other.weights[0] += 1;
  const std::pair<std::size_t, Scenario> scenarios[] = {
      {15, {{}, make_state(100), {}}},
      {15, {{make_state(100), make_state(200)}, make_state(300), {}}},
      {30, {{make_state(100), make_state(200), make_state(250)}, make_state(300), {1, 0, false}}},
      {18, {{make_state(100)}, other, {}}}};  // replaces the one of its step
  for (const auto& [operations, scenario] : scenarios) {
    SCOPED_TRACE(scenario.saved.facts.step);
    EXPECT_GE(lose_power_everywhere(scenario), operations * kVariants);
    if (HasFatalFailure()) return;
  }
}

TEST(PowerLossTest, MetricsAreTheOldOrTheCutOnes) {
  const std::string lines[] = {R"({"event":"step","step":1})", R"({"event":"step","step":2})"};
  const std::string whole = lines[0] + "\n" + lines[1] + "\n";
  RunEnv env;
  write_synced(env, "run/metrics.jsonl", std::as_bytes(std::span(whole)));
  const MemoryDisk base = env.disk();
  env.start_trace();
  truncate_metrics(env, "run/metrics.jsonl", 1);
  for (std::size_t length = 0; length <= env.trace().size(); ++length) {
    for (std::uint32_t variant = 0; variant < kVariants; ++variant) {
      MemoryEnv found(
          after_power_loss(base, std::span(env.trace()).first(length), PowerLoss::variant(variant)));
      const std::size_t size = found.file("run/metrics.jsonl").size();
      ASSERT_TRUE(size == lines[0].size() + 1 || (size == whole.size() && length < env.trace().size()))
          << size;
      truncate_metrics(found, "run/metrics.jsonl", 1);
      ASSERT_EQ(found.file("run/metrics.jsonl").size(), lines[0].size() + 1);
    }
  }
}

/// The model itself: without the directory's fsync a rename may be lost, without the file's its bytes may be.
TEST(PowerLossTest, ModelLosesWhatWasNotSynced) {
  const std::vector<std::byte> bytes(8, std::byte{1});
  RunEnv env;
  const MemoryDisk base = env.disk();
  env.start_trace();
  const auto file = env.create("run/a");
  file->write(bytes);
  env.rename("run/a", "run/b");
  env.sync_directory("run");
  const auto lost = after_power_loss(base, env.trace(), {PowerLoss::Names::kDrop, PowerLoss::Data::kDrop, 0});
  ASSERT_GE(lost.find("run/b"), 0);
  EXPECT_EQ(lost.used_bytes(), 0U);
  const auto names = std::span(env.trace()).first(env.trace().size() - 1);
  EXPECT_EQ(after_power_loss(base, names, {PowerLoss::Names::kDrop, PowerLoss::Data::kKeep, 0}).find("run/b"),
            -1);
  EXPECT_GE(after_power_loss(base, names, {PowerLoss::Names::kKeep, PowerLoss::Data::kKeep, 0}).find("run/b"),
            0);
}

// Every flipped bit and every truncation of a checkpoint's files is found, and named with its file and
// tensor.

/// Damages one checkpoint in many ways and compares what load says with what was done.
class Damager {
 public:
  explicit Damager(const CheckpointState& state) : path_(save_checkpoint(env_, kRun, state)) {
    for (const char* name : {kModelFile, kOptimizerFile}) remember_owners(name);
  }

  /// @returns how many cases were tried
  std::size_t flip_every_bit() {
    std::size_t cases = 0;
    for (const std::string& name : checkpoint_files()) {
      const std::size_t bits = 8 * file(name).size();
      for (std::size_t bit = 0; bit < bits && !::testing::Test::HasFailure(); ++bit, ++cases) {
        const auto mask = static_cast<std::byte>(1U << (bit % 8));
        file(name)[bit / 8] ^= mask;
        expect_named(name, bit / 8, "bit " + std::to_string(bit) + " of " + name);
        file(name)[bit / 8] ^= mask;
      }
    }
    return cases;
  }

  std::size_t truncate_everywhere() {
    std::size_t cases = 0;
    for (const std::string& name : checkpoint_files()) {
      const std::vector<std::byte> whole = file(name);
      for (std::size_t size = 0; size < whole.size() && !::testing::Test::HasFailure(); ++size, ++cases) {
        file(name).resize(size);
        expect_named(name, size, name + " cut to " + std::to_string(size));
        file(name) = whole;
      }
    }
    return cases;
  }

  bool good() { return verify_checkpoint(env_, path_).empty(); }

 private:
  std::vector<std::byte>& file(const std::string& name) { return env_.file(path_ + "/" + name); }

  /// The tensor that owns each byte, from the undamaged file; empty for a header.
  void remember_owners(const std::string& name) {
    const auto parsed = SafetensorsFile::parse(file(name), name);
    std::size_t data = 0;
    for (const TensorView& t : parsed.tensors()) data += t.bytes.size();
    std::vector<std::string>& owners = owners_[name];
    owners.resize(file(name).size() - data);
    for (const TensorView& t : parsed.tensors()) owners.resize(owners.size() + t.bytes.size(), t.name);
  }

  void expect_named(const std::string& name, std::size_t byte, const std::string& what) {
    std::string expected = path_ + "/" + name + ": ";
    const std::string tensor = name == kManifestFile ? "" : owners_[name][byte];
    if (!tensor.empty()) expected += "tensor '" + tensor + "': ";
    try {
      load_checkpoint(env_, path_);
      ADD_FAILURE() << "not noticed: " << what;
    } catch (const DataError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(expected))
          << what << "\nsaid: " << error.what() << "\nexpected: " << expected;
    }
  }

  RunEnv env_;
  std::string path_;
  std::map<std::string, std::vector<std::string>> owners_;
};

TEST(BitFlipTest, EveryFlippedBitAndTruncationIsFoundAndNamed) {
  constexpr std::size_t kCases = test::effort(100000, 10000);
  std::size_t cases = 0;
  for (std::int64_t step = 1; cases < kCases && !HasFailure(); ++step) {
    Damager damager(make_state(step, static_cast<std::size_t>(step * 5)));
    cases += damager.flip_every_bit() + damager.truncate_everywhere();
    EXPECT_TRUE(damager.good());
  }
  EXPECT_GE(cases, kCases);
}

TEST(BitFlipTest, VerifyNamesEveryTensorThatIsHit) {
  RunEnv env;
  const std::string path = save_checkpoint(env, kRun, make_state(100));
  auto& model = env.file(path + "/" + kModelFile);
  model.back() ^= std::byte{1};                              // scale, the last tensor
  model[model.size() - 4 - 1] ^= std::byte{1};               // fc.bias before it
  env.file(path + "/" + kOptimizerFile)[0] ^= std::byte{1};  // its header
  const auto damages = verify_checkpoint(env, path);
  ASSERT_EQ(damages.size(), 3U);
  EXPECT_EQ(damages[0].tensor, "fc.bias");
  EXPECT_EQ(damages[1].tensor, "scale");
  EXPECT_EQ(damages[2].path, path + "/" + kOptimizerFile);
  EXPECT_EQ(damages[2].tensor, "");
  const std::string manifest = path + "/" + kManifestFile;
  env.file(manifest)[0] ^= std::byte{1};
  const auto of_manifest = verify_checkpoint(env, path);
  ASSERT_EQ(of_manifest.size(), 1U) << "nothing else is looked at";
  EXPECT_EQ(of_manifest[0].path, manifest);
}

}  // namespace
}  // namespace lockstep
