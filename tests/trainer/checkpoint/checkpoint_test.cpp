// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints on the real file system: round trip, replacement, and which one a run goes on from.
#include "trainer/checkpoint/checkpoint.hpp"

#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"

namespace lockstep {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  std::string save(std::int64_t step) { return save_checkpoint(env_, run_.path(), make_state(step)); }

  std::optional<FoundCheckpoint> find() {
    return find_latest(env_, run_.path(), [&](const std::string& message) { told_.push_back(message); });
  }

  static void damage(const std::string& file, std::streamoff position) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(position);
    stream.put('\x7F');
    ASSERT_TRUE(stream.good()) << file;
  }

  Env& env_ = Env::posix();
  TemporaryDirectory run_;
  std::vector<std::string> told_;
};

TEST_F(CheckpointTest, RoundTripKeepsEveryFactAndBit) {
  CheckpointState state = make_state(1200);
  state.facts.test_accuracy = 0.9871;
  state.facts.seed = ~std::uint64_t{0};
  state.facts.epoch_loss_sum = 12345.678901234567;
  state.weights[0] = -0.0F;
  const std::string path = save_checkpoint(env_, run_.path(), state);
  EXPECT_EQ(path, run_.path() + "/checkpoints/step-00001200");
  const CheckpointState loaded = load_checkpoint(env_, path);
  EXPECT_EQ(loaded.facts, state.facts);
  EXPECT_EQ(weights_sha256(loaded.weights), weights_sha256(state.weights));
  EXPECT_EQ(loaded.optimizer, state.optimizer);
  EXPECT_EQ(env_.list(run_.path() + "/checkpoints"), std::vector<std::string>{"step-00001200"});
}

/// Checkpoints that old versions could write: checksums are good, but no network can compute with the numbers.
TEST_F(CheckpointTest, WeightsThatAreNotFiniteAreRefusedAndNamed) {
  save(3);
  CheckpointState state = make_state(5);
  state.facts.kept = {{"bn.running_mean", {2}}, {"bn.running_var", {2}}};
  state.weights.insert(state.weights.end(), {-1, 0, 1, -2});
  state.weights[1] = std::numeric_limits<float>::infinity();
  state.weights[2] = std::numeric_limits<float>::quiet_NaN();
  const std::string path = save_checkpoint(env_, run_.path(), state);
  const std::string wrong =
      "2 of 6 numbers of fc.weight are NaN or infinite, 1 of 2 numbers of bn.running_var is NaN, infinite or "
      "negative";
  EXPECT_EQ(test::error_of<DataError>([&] { load_checkpoint(env_, path); }),
            path + "/model.safetensors: " + wrong);
  const auto damages = verify_checkpoint(env_, path);
  ASSERT_EQ(damages.size(), 1U);
  EXPECT_EQ(to_string(damages.front()), path + "/model.safetensors: " + wrong);
  EXPECT_EQ(find()->state.facts.step, 3);
  EXPECT_EQ(weights_sha256(load_checkpoint(env_, path, Weights::kAny).weights),
            weights_sha256(state.weights));
}

TEST_F(CheckpointTest, FilesArePlainSafetensorsAndTheOptimisersTensorsComeBackByTheirNames) {
  CheckpointState state = make_state(5);
  state.optimizer = {{"exp_avg", state.weights}, {"exp_avg_sq", state.optimizer[0].values}};
  const std::string path = save_checkpoint(env_, run_.path(), state);
  EXPECT_EQ(load_checkpoint(env_, path).optimizer, state.optimizer);
  const auto model = test::read_safetensors(path + "/" + kModelFile),
             optimizer = test::read_safetensors(path + "/" + kOptimizerFile);
  EXPECT_EQ(model.tensors().front().name, "fc.weight");
  EXPECT_EQ(model.require("fc.weight", "F32", {2, 3}).bytes.size(), 24U);
  EXPECT_EQ(optimizer.tensors().front().name, "exp_avg.fc.weight");
  EXPECT_EQ(optimizer.require("exp_avg_sq.fc.weight", "F32", {2, 3}).bytes.size(), 24U);
  state.optimizer.clear();
  EXPECT_TRUE(load_checkpoint(env_, save_checkpoint(env_, run_.path(), state)).optimizer.empty());
}

TEST_F(CheckpointTest, SameStateGivesTheSameBytes) {
  const std::string path = save(7);
  const auto model = env_.read(path + "/" + kModelFile), manifest = env_.read(path + "/" + kManifestFile);
  save(7);
  EXPECT_EQ(env_.read(path + "/" + kModelFile), model);
  EXPECT_EQ(env_.read(path + "/" + kManifestFile), manifest);
}

TEST_F(CheckpointTest, TheNewestIsFoundAndStandsForItsRun) {
  EXPECT_FALSE(find());
  EXPECT_FALSE(find_latest(env_, run_.path() + "/nowhere", {}));
  RunEnv empty;
  EXPECT_FALSE(find_latest(empty, kRun, {}));
  EXPECT_EQ(empty.pauses(), 0U) << "there is nothing to look at again";
  const std::string path = save(100), newest = save(90000000000);
  save(300);
  EXPECT_EQ(find()->state.facts.step, 90000000000);
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(open_checkpoint(env_, run_.path(), {}).path, newest);
  EXPECT_EQ(open_checkpoint(env_, path, {}).path, path);
  const auto all = list_checkpoints(env_, run_.path());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].step, 300) << "newest first";
  EXPECT_EQ(all[2].path, path);
}

TEST_F(CheckpointTest, DamagedNewestIsNamedAndTheOneBeforeUsed) {
  save(100);
  const std::string newest = save(200), model = newest + "/" + kModelFile;
  const auto expect_told = [&](const std::string& said) {
    EXPECT_EQ(find()->state.facts.step, 100);
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_TRUE(told_[0].starts_with(newest + said)) << told_[0];
    told_.clear();
  };
  damage(model, static_cast<std::streamoff>(env_.size(model)) - 1);
  expect_told("/model.safetensors: tensor 'scale': ");
  save(200);
  std::filesystem::remove(newest + "/" + kOptimizerFile);
  expect_told("/optimizer.safetensors: is missing");
}

/// No memory is asked for that the manifest does not promise.
TEST_F(CheckpointTest, FileThatHasGrownToTerabytesIsDamagedAndNotRead) {
  save(100);
  for (const std::string said : {"/model.safetensors: the file is 4398046511104 bytes long",
                                 "/manifest.json: too large for a manifest"}) {
    const std::string newest = save(200);
    std::error_code error;
    std::filesystem::resize_file(newest + said.substr(0, said.find(':')), std::uintmax_t{1} << 42, error);
    if (error) GTEST_SKIP() << "no file here can have holes of terabytes: " << error.message();
    told_.clear();
    EXPECT_EQ(find()->state.facts.step, 100);
    test::expect_words(told_.at(0), {newest + said});
  }
}

TEST_F(CheckpointTest, ALinkToNowhereIsPassedOverAndSaid) {
  save(100);
  const std::string link = run_.path() + "/checkpoints/step-00000200";
  std::filesystem::create_directory_symlink("nowhere", link);
  EXPECT_EQ(find()->state.facts.step, 100);
  EXPECT_EQ(told_, std::vector<std::string>{link + ": there is no such checkpoint; see RUN/checkpoints for "
                                                   "those there are; using the checkpoint before it"});
  EXPECT_EQ(summarise_checkpoints(env_, run_.path()).size(), 1U);
}

TEST_F(CheckpointTest, MissingCheckpointIsMissingData) {
  EXPECT_THROW(load_checkpoint(env_, run_.path() + "/checkpoints/step-00000001"), MissingDataError);
  EXPECT_THROW(verify_checkpoint(env_, run_.path() + "/checkpoints/step-00000001"), MissingDataError);
  EXPECT_THROW(open_checkpoint(env_, run_.path(), {}), MissingDataError);
  for (const char* lost : {kManifestFile, kModelFile}) {
    const std::string path = save(5);
    std::filesystem::remove(path + "/" + lost);
    EXPECT_THROW(open_checkpoint(env_, path, {}), DataError) << lost;
  }
}

TEST_F(CheckpointTest, RunWhoseCheckpointsAreAllDamagedIsDamagedData) {
  for (const auto& [step, told] : {std::pair{5, "its only one is"}, {6, "all 2 are"}}) {
    damage(save(step) + "/model.safetensors", 200);
    EXPECT_EQ(message_of<DataError>([&] { open_checkpoint(env_, run_.path(), [](const std::string&) {}); }),
              fmt::format("{}: holds no good checkpoint; {} damaged", run_.path(), told));
  }
}

TEST_F(CheckpointTest, ReplacedOneIsUsedWhileItsSuccessorIsDamaged) {
  const std::string path = save(100);
  std::filesystem::rename(path, path + kReplacedSuffix);
  save(100);
  EXPECT_FALSE(env_.exists(path + kReplacedSuffix)) << "a good successor makes it needless";
  std::filesystem::copy(path, path + kReplacedSuffix);
  EXPECT_EQ(find()->path, path) << "of two good ones it is the newer one";
  damage(path + "/" + kModelFile, 20);
  EXPECT_EQ(find()->path, path + kReplacedSuffix);
  remove_leftovers(env_, run_.path());
  EXPECT_EQ(find()->path, path + kReplacedSuffix);
  save(100);
  EXPECT_EQ(find()->path, path);
  EXPECT_FALSE(env_.exists(path + kReplacedSuffix));
  std::filesystem::copy(path, path + kReplacedSuffix);
  remove_leftovers(env_, run_.path());
  EXPECT_FALSE(env_.exists(path + kReplacedSuffix));
}

TEST_F(CheckpointTest, LeftoversOfACrashGo) {
  save(100);
  const std::string directory = run_.path() + "/checkpoints";
  for (const char* name : {"step-00000200", "step-00000200.2", "removed-step-00000050.2.3", "step-00000200.x",
                           "saved-step-00000001", "2"})
    std::filesystem::create_directory(directory + "/.tmp-" + name);
  std::ofstream(directory + "/.tmp-step-00000200/model.safetensors") << "half";
  remove_leftovers(env_, run_.path());
  EXPECT_EQ(env_.list(directory), (std::vector<std::string>{".tmp-2", ".tmp-saved-step-00000001",
                                                            ".tmp-step-00000200.x", "step-00000100"}))
      << "names that a save or removal gives go";
}

TEST_F(CheckpointTest, DamagedOnesAreKeptAside) {
  save(100);
  for (int time = 1; time <= 2; ++time) {
    damage(save(200) + "/" + kModelFile, 20);
    std::vector<std::string> damaged;
    const auto found = find_latest(
        env_, run_.path(), [](const std::string&) {}, &damaged);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state.facts.step, 100);
    set_aside_damaged(env_, run_.path(), damaged, [&](const std::string& line) { told_.push_back(line); });
  }
  const std::string kept = run_.path() + "/checkpoints/step-00000200: kept as step-00000200.damaged",
                    advice = "; delete it when it is not needed any more";
  EXPECT_EQ(told_, (std::vector<std::string>{kept + advice, kept + "-2" + advice}));
  EXPECT_EQ(env_.list(run_.path() + "/checkpoints"),
            (std::vector<std::string>{"step-00000100", "step-00000200.damaged", "step-00000200.damaged-2"}));
  EXPECT_EQ(list_checkpoints(env_, run_.path()).size(), 1U);
}

TEST_F(CheckpointTest, NamesOfOtherThingsAreNotCheckpoints) {
  EXPECT_EQ(checkpoint_step("step-00001200"), 1200);
  EXPECT_EQ(checkpoint_step("step-00001200.replaced"), 1200);
  for (const char* name :
       {"step-", "step-1x", "step--1", ".tmp-step-00000001", "steps-1", "step-99999999999999999999"})
    EXPECT_FALSE(checkpoint_step(name).has_value()) << name;
}

}  // namespace
}  // namespace lockstep
