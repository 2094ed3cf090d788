// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tensors by the patterns of their names: groups, frozen ones, those that are spared decay.
#include "tests/support/messages.hpp"
#include "tests/trainer/training/weight_update_fixture.hpp"

namespace lockstep {
namespace {

using namespace weight_update_test;

TEST(PatternTest, StarIsAnyCharactersAndQuestionMarkOne) {
  for (const char* pattern :
       {"fc1.weight", "fc*", "*", "**", "*weight", "f*1*t", "fc?.weight", "fc1.weigh?", "*.*"})
    EXPECT_TRUE(matches_pattern(pattern, "fc1.weight")) << pattern;
  for (const char* pattern :
       {"", "fc", "fc?", "c*", "*bias", "fc1.weight?", "fc??.weight", "FC*", "fc1.weight*x", "fc1.w*weight"})
    EXPECT_FALSE(matches_pattern(pattern, "fc1.weight")) << pattern;
  EXPECT_TRUE(matches_pattern("*ab", "aab"));
  EXPECT_FALSE(matches_pattern("*ab", "acb"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_FALSE(matches_pattern("?", ""));
  std::string hostile;
  for (int i = 0; i < 100; ++i) hostile += "*a";
  EXPECT_FALSE(matches_pattern(hostile + "b", std::string(200, 'a'))) << "at once, not after years";
}

TEST(GroupsTest, NeighboursThatAreTreatedAlikeAreOneRange) {
  const auto ranges = [](const std::string& train) {
    const WeightUpdate update(training_options(job_with(train)), layout_of_two_layers(), kStepsPerEpoch);
    std::vector<std::size_t> sizes;
    for (const UpdateTensor& range : update.tensors()) sizes.push_back(range.size);
    return sizes;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(ranges("optimizer: {weight_decay: 0.1}"), Sizes{92});
  EXPECT_EQ(ranges("groups: [{match: conv*, lr_factor: 0.1}]"), (Sizes{52, 40}));
  EXPECT_EQ(ranges("groups: [{match: conv*, lr_factor: 1}]"), Sizes{92});
  EXPECT_EQ(ranges("groups: [{match: conv*, weight_decay: 0}]"), Sizes{92}) << "none of the others decays";
  EXPECT_EQ(ranges("freeze: [conv.weight, fc*]"), (Sizes{48, 4, 40}));
  EXPECT_EQ(ranges("optimizer: {kind: lamb}"), (Sizes{48, 4, 35, 5}));
}

std::vector<float> decays_of(const WeightUpdate& update) {
  std::vector<float> decays;
  for (const UpdateTensor& tensor : update.each()) decays.push_back(tensor.decay);
  return decays;
}

TEST(GroupsTest, WithoutADecayOfTheOptimiserOthersAreSharesOfTheLargestOfAGroup) {
  const WeightUpdate update(
      training_options(job_with("groups: [{match: conv*, lr_factor: 0.5}, {match: fc.w*, weight_decay: 0.2}, "
                                "{match: fc.b*, weight_decay: 0.1}]")),
      layout_of_two_layers(), kStepsPerEpoch);
  EXPECT_EQ(update.scalars(0).at[0], 0.2F);
  EXPECT_EQ(decays_of(update), (std::vector<float>{0, 0, 1, 0.5F}));
}

TEST(GroupsTest, BiasesAndNormsOfAnyShapeAreSparedDecay) {
  ParameterLayout layout = layout_of_two_layers();
  layout.parameters[2] = {.name = "ln.weight",
                          .shape = {5, 7, 1},
                          .offset = 52,
                          .size = 35,
                          .initial = Parameter::Initial::kOnes};
  const WeightUpdate update(training_options(job_with("optimizer: {weight_decay: 0.1, decay_biases: false}")),
                            layout, kStepsPerEpoch);
  EXPECT_EQ(decays_of(update), (std::vector<float>{1, 0, 0, 0}));
}

TEST(GroupsTest, PatternsThatMatchNothingAreRefusedWithNamesThatDo) {
  const auto error = [](const std::string& train) {
    return test::error_of<ConfigError>([&] {
      const Job job = job_with(train);
      with_places(job, [&] { require_patterns_that_match(job.train, layout_of_two_layers()); });
    });
  };
  const std::string names = "; there are conv.weight, conv.bias, fc.weight, fc.bias";
  EXPECT_EQ(error("groups: [{match: fc*, lr_factor: 0.1}], freeze: conv*"), "");
  EXPECT_EQ(
      error("freeze: [conv*, fd*]"),
      "job.yaml:1:42: train.freeze: no tensor of the network has a name like 'fd*' (did you mean 'fc*'?)" +
          names);
  EXPECT_EQ(
      error("groups: [{match: cnov.weight, lr_factor: 2}]"),
      "job.yaml:1:42: train.groups: no tensor of the network has a name like 'cnov.weight' (did you mean "
      "'conv.weight'?)" +
          names);
  EXPECT_EQ(error("groups: [{match: fc*, lr_factor: 2}, {match: '*.bias', lr_factor: 2}, {match: fc.b*}]"),
            "job.yaml:1:42: train.groups: groups before it take all tensors that 'fc.b*' matches, and the "
            "first one "
            "counts; move it up or remove it");
  EXPECT_EQ(
      error("freeze: ['*']"),
      "job.yaml:1:42: train.freeze: all tensors are frozen, and nothing is left to train; remove a pattern");
}

TEST(GroupsTest, OfManyTensorsTwelveAreNamed) {
  ParameterLayout layout;
  std::string names;
  for (int i = 0; i < 12; ++i) {
    layout.parameters.push_back(
        {.name = fmt::format("fc{}.weight", i), .shape = {1}, .offset = 0, .size = 1});
    names += (i == 0 ? "" : ", ") + layout.parameters.back().name;
  }
  const auto error = [&] {
    const Job job = job_with("freeze: [zz]");
    return message_of<OptionError>([&] { require_patterns_that_match(job.train, layout); });
  };
  const std::string none = "train.freeze: no tensor of the network has a name like 'zz'; there are ";
  EXPECT_EQ(error(), none + names);
  layout.parameters.push_back(layout.parameters.front());
  EXPECT_EQ(error(), none + names + ", ...");
}

}  // namespace
}  // namespace lockstep
