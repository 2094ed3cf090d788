// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network that comes back from a checkpoint, and its classes beside those of another set.
#include "trainer/run/saved_model.hpp"

#include "common/error.hpp"
#include "models/network.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/run/class_order.hpp"

#include <fmt/ranges.h>

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

TEST(SavedModelTest, ACheckpointIsANetworkAgain) {
  const TemporaryDirectory directory;
  CheckpointState state = make_state(7);
  for (const char* key :
       {"train_samples_sha256", "train_labels_sha256", "test_samples_sha256", "test_labels_sha256"})
    state.facts.data[key] = "";
  state.facts.data.insert({{"train_samples", "3"}, {"test_samples", "2"}, {"class_names", "a\nb"}});
  state.facts.gradient_units.exponents = {-40, 77};
  state.optimizer.clear();
  state.facts.model = {
      {"set", "idx"},    {"mean", "0.5"}, {"std", "0.25"}, {"classes", "3"},
      {"channels", "2"}, {"height", "1"}, {"width", "1"},  {"yaml", "layers:\n  - linear: {out: classes}\n"}};
  state.facts.job = {{"model", "nets/tiny.yaml"}, {"parallel.grain", "32"}, {"train.loss", "mse"}};
  state.facts.parameters = {{"fc.weight", {3, 2}}, {"fc.bias", {3}}};
  state.weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto load = [&] {
    std::filesystem::remove_all(directory.path("checkpoints"));
    return load_saved_model(save_checkpoint(Env::posix(), directory.path(), state));
  };
  const SavedModel saved = load();
  EXPECT_EQ(saved.checkpoint, directory.path("checkpoints/step-00000007"));
  EXPECT_EQ(saved.network.name(), "tiny");
  EXPECT_EQ(saved.network.classes(), 3);
  EXPECT_EQ(saved.grain, 32);
  EXPECT_EQ(saved.loss, LossKind::kMeanSquares);
  EXPECT_EQ(saved.data.class_names, (Names{"a", "b"}));
  EXPECT_TRUE(std::ranges::equal(std::span(saved.weights.data(), saved.weights.size()), state.weights));
  const auto refusal_of = [&](const std::string& key, const std::string& value) {
    const auto before = state.facts.model;
    state.facts.model[key] = value;
    const std::string said = message_of<DataError>(load);
    state.facts.model = before;
    return said.substr(std::min(said.size(), directory.path("checkpoints/step-00000007").size()));
  };
  EXPECT_EQ(refusal_of("mean", "[1, 2, 3]"), ": the manifest's model.mean has 3 numbers for 2 channels");
  EXPECT_EQ(refusal_of("std", "[1, 2, 3]"), ": the manifest's model.std has 3 numbers for 2 channels");
  EXPECT_EQ(refusal_of("classes", "4"), ": 9 weights, but its model has 12");
  EXPECT_EQ(refusal_of("classes", "0"), ": the manifest's model.classes is 0, not 1 or more");
  EXPECT_EQ(refusal_of("width", "-1"), ": the manifest's model.width is -1, not 1 or more");
  const std::string damaged = refusal_of("yaml", "layers:\n  - lin: 3\n");
  EXPECT_TRUE(
      damaged.starts_with(": the network that it records is damaged: tiny.yaml:2:5: unknown layer 'lin'"))
      << damaged;
  EXPECT_TRUE(
      refusal_of("precision", "int16 0").starts_with(": the manifest's model.precision is 'int16 0', "));
  state.facts.job["model"] = "my.net";
  EXPECT_EQ(load().network.name(), "my.net") << "of a model that ships";
  state.facts.job["model"] = "[my, net]";
  EXPECT_TRUE(
      message_of<DataError>(load).ends_with("step-00000007: the manifest's job.model is '[my, net]', not the "
                                            "name of a model or a path to a YAML network"));
  state.facts.job.erase("model");
  EXPECT_EQ(load().network.name(), "network") << "of a program that uses the library";
}

// Classes by their names.

TEST(ClassOrderTest, ASetIsNumberedAsTheModelIs) {
  const auto numbered = [](const Names& classes, Names names, TrainTestData data = {}) {
    data.class_names = std::move(names);
    data.origin = "sets/a";
    data.train.classes = 2;
    data.train.labels = {0, 1, 1};
    const std::string said = number_as(classes, data);
    return fmt::format("{}: {}", said, fmt::join(data.train.labels, " "));
  };
  const Names set = {"dog", "cat"};
  EXPECT_EQ(numbered({}, set), ": 0 1 1");
  EXPECT_EQ(numbered({"dog", "cat"}, set), ": 0 1 1");
  EXPECT_EQ(numbered({"cat", "dog"}, set), "classes matched by name: 1 0 0");
  EXPECT_EQ(numbered({"cat", "dog", "eel"}, set), "classes matched by name, no samples of eel: 1 0 0");
  const std::string by_number = "classes go by number, since one side has no names for them: 0 1 1";
  EXPECT_EQ(numbered({"0", "1"}, set), by_number);
  EXPECT_EQ(numbered(set, {"0", "1"}), by_number);
  const Names with_cow = {"cat", "cow"}, with_eel = {"cat", "dog", "eel"};
  EXPECT_EQ(message_of<UsageError>([&] { numbered(with_cow, set); }),
            "sets/a: the model does not know dog, only cat, cow; rename the classes that it knows, and leave "
            "others out");
  const Names ratings = {"0", "1", "2", "4"}, other_ratings = {"0", "1", "2", "3"};
  EXPECT_EQ(message_of<UsageError>([&] { numbered(ratings, other_ratings); }),
            "sets/a: the model does not know 3, only 0, 1, 2, 4; rename the classes that it knows, and leave "
            "others out");
  EXPECT_EQ(numbered(ratings, {"1", "4"}), "classes matched by name, no samples of 0, 2: 1 3 3");
  TrainTestData several;
  several.test.label_sets = {1, 0};
  EXPECT_EQ(message_of<UsageError>([&] { numbered(with_eel, set, std::move(several)); }),
            "sets/a: its samples have several labels, none of which says eel; label them, too");
}

/// Three classes of two features: fc.weight, then fc.bias.
TEST(ClassOrderTest, RowsOfTheLastLayerFollowTheirNames) {
  const Network network =
      Network::parse("layers:\n  - linear: {out: classes}\n", "m.yaml", ImageShape{2, 1, 1}, 3);
  const auto ordered = [&](const Names& known, const Names& classes) {
    std::vector<float> weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::string said = order_last_layer(network, weights, known, classes);
    return fmt::format("{}: {}", said, fmt::join(weights, " "));
  };
  const Names abc = {"a", "b", "c"};
  for (const auto& [known, classes] : std::vector<std::pair<Names, Names>>{
           {abc, abc}, {abc, {"b", "a"}}, {abc, {"0", "1", "2"}}, {{"0", "1", "2"}, abc}})
    EXPECT_EQ(ordered(known, classes), ": 1 2 3 4 5 6 7 8 9");
  EXPECT_EQ(ordered(abc, {"c", "a", "b"}),
            "the last layer's rows are put in the order of the set's classes, by name: 5 6 1 2 3 4 9 7 8");
  EXPECT_EQ(ordered(abc, {"c", "a", "x"}),
            "note: they answer for a, b, c, and the set's classes are c, a, x; the last layer is taken as it "
            "is: 1 2 3 4 5 6 7 8 9");
}

/// Each of their numbers belongs to more than a class: a mean, a row of the layer before, a group.
TEST(ClassOrderTest, ALastLayerWithoutARowForEachClassIsRefused) {
  const Names abc = {"a", "b", "c"};
  for (const char* layers :
       {"  - conv2d: {out: 3, kernel: 1}\n  - global_avg_pool\n", "  - linear: 3\n  - batch_norm\n",
        "  - linear: 3\n  - layer_norm\n", "  - conv2d: {out: 3, kernel: 4, groups: 3}\n",
        "  - conv2d: {out: 3, kernel: 4}\n  - conv_transpose2d: {out: 3, kernel: 1}\n"}) {
    const Network network =
        Network::parse(std::string("layers:\n") + layers, "m.yaml", ImageShape{3, 4, 4}, 3);
    std::vector<float> weights(network.parameters().weights_size(), 1);
    EXPECT_EQ(message_of<DataError>([&] {
                order_last_layer(network, weights, abc, {"c", "a", "b"});
              }),
              "the weights answer for a, b, c, the set has c, a, b, and the last layer has no row for each "
              "class; give the set's classes the order of the weights'")
        << layers;
  }
}

}  // namespace
}  // namespace lockstep
