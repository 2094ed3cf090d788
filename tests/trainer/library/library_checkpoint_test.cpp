// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints of a Trainer and of weights of a program's own: their manifests, and that they come back.
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/library/samples.hpp"

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

/// The manifest of a checkpoint, without white space.
std::string manifest_in(const std::string& checkpoint) {
  std::ifstream file(checkpoint + "/manifest.json");
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

/// After two steps.
std::string manifest_of(const lockstep::Dataset& data, const lockstep::TrainerOptions& options = kOptions) {
  const lockstep::testing::TemporaryDirectory directory;
  std::string text;
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    const auto network =
        lockstep::Network::parse("layers: [{linear: classes}]", data.shape(), data.classes());
    lockstep::Trainer trainer(network, data, world, options);
    for (int step = 0; step < 2; ++step) trainer.step();
    text = manifest_in(trainer.save(directory.path("set")));
  });
  return text;
}

TEST(LibraryCheckpointTest, ACheckpointNamesItsSetAndNormalisationWhereTheSetHasAName) {
  const auto named = lockstep::load_dataset({.set = "synthetic",
                                             .train_samples = 40,
                                             .test_samples = 20,
                                             .normalisation = {.mean = {0.25}, .std = {0.5}}});
  const std::string of_named = manifest_of(named.train);
  for (const char* part : {R"("set":"synthetic")", R"("mean":"0.25")", R"("std":"0.5")",
                           R"("data.global_batch":"20")", R"("ranks":"1")"})
    EXPECT_NE(of_named.find(part), std::string::npos) << part << " in " << of_named;
  for (const char* part : {R"("unprinted_loss")", R"("unlogged_answers":{"steps":2)", R"("patience")",
                           R"("bucket_plan":"")", R"("epoch_loss_sum":0.0,)"})
    EXPECT_EQ(of_named.find(part), std::string::npos) << part << " in " << of_named;
  EXPECT_EQ(manifest_of(bytes_set(40)).find(R"("set":)"), std::string::npos);
}

TEST(LibraryCheckpointTest, ACheckpointNamesTheArithmeticOfItsLoss) {
  lockstep::TrainerOptions options = kOptions;
  options.loss = lockstep::cross_entropy(0.1);
  const auto pair =
      lockstep::Dataset::from_function(kShape, 2, 40, make_sample, [](auto i) { return i % 2; });
  EXPECT_NE(manifest_of(pair, options).find(R"("arithmetic":{"version":3)"), std::string::npos);
  EXPECT_NE(manifest_of(pair).find(R"("arithmetic":{"version":2,"since":0)"), std::string::npos);
  const lockstep::testing::TemporaryDirectory directory;
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    const auto network = lockstep::Network::parse("layers: [{linear: classes}]", kShape, 2);
    lockstep::Trainer plain(network, pair, world, kOptions), smoothed(network, pair, world, options);
    plain.step();
    smoothed.load(plain.save(directory.path("plain")));
    EXPECT_NE(manifest_in(smoothed.save(directory.path("smoothed"))).find(R"("version":3,"since":1)"),
              std::string::npos);
  });
}

TEST(LibraryCheckpointTest, CheckpointOfOwnWeightsComesBack) {
  lockstep::Checkpoint saved{.step = 7,
                             .seed = 3,
                             .tensors = {{"w", {2, 2}}, {"b", {2}}},
                             .weights = {1, 2, 3, 4, 5, 6},
                             .optimizer = {{"momentum", {6, 5, 4, 3, 2, 1}}},
                             .units = {.exponents = {-40, -41}, .changed_at = 2, .steps = 7}};
  const lockstep::testing::TemporaryDirectory directory;
  const std::string at = lockstep::save_checkpoint(directory.path("own/of it"), saved);
  for (const char* part : {R"("unprinted_loss")", R"("patience")"})
    EXPECT_EQ(manifest_in(at).find(part), std::string::npos) << part << " is of trainings";
  const lockstep::Checkpoint back = lockstep::load_checkpoint(at);
  EXPECT_EQ(std::pair(back.step, back.seed), std::pair(saved.step, saved.seed));
  EXPECT_EQ(back.tensors[0].shape, saved.tensors[0].shape);
  EXPECT_EQ(back.tensors[1].name, "b");
  EXPECT_EQ(back.weights, saved.weights);
  EXPECT_EQ(back.optimizer, saved.optimizer);
  EXPECT_EQ(back.units.exponents, saved.units.exponents);
  EXPECT_EQ(std::pair(back.units.changed_at, back.units.steps), std::pair(std::int64_t{2}, std::int64_t{7}));
  saved.units.steps = 12;
  const std::string of_more_steps = lockstep::save_checkpoint(directory.path("more"), saved);
  EXPECT_EQ(lockstep::load_checkpoint(of_more_steps).units.steps, 12) << "of which the program counts others";
}

}  // namespace
