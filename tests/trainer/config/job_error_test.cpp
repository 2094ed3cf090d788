// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every way in which a job file can be wrong, with the whole message.
#include "data/sets/catalogue.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

namespace lockstep::job_error_test {
namespace {

/// Of a job whose first line is `model: net`, so that the given text starts on line 2.
std::string error_of(const std::string& yaml) {
  return message_of<ConfigError>([&] { parse_job("model: net\n" + yaml, "job.yaml"); });
}

std::string all_optimizers() {
  return fmt::format("{}", fmt::join(choices_of("train.optimizer"), ", "));
}

TEST(JobErrorTest, MisspeltKeyGetsASuggestion) {
  EXPECT_EQ(error_of("trian: {}\n"), "job.yaml:2:1: unknown key 'trian' (did you mean 'train'?)");
  EXPECT_EQ(error_of("train:\n  optimiser: {lr: 1}\n"),
            "job.yaml:3:3: unknown key 'optimiser' in 'train' (did you mean 'optimizer'?)");
  EXPECT_EQ(error_of("train: {optimizer: {momentun: 0.5}}\n"),
            "job.yaml:2:21: unknown key 'momentun' in 'train.optimizer' (did you mean 'momentum'?)");
}

TEST(JobErrorTest, SectionOfAnotherSectionIsPointedTo) {
  EXPECT_EQ(error_of("optimiser: {lr: 3}\n"),
            "job.yaml:2:1: unknown key 'optimiser' (did you mean 'train.optimizer'?)");
}

TEST(JobErrorTest, NetworkInPlaceOfAJobIsToldSo) {
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("name: mine\nlayers: [flatten]\n", "mine.yaml"); }),
            "mine.yaml:2:9: this file describes a network, not a job; a job names it: 'model: mine.yaml', or "
            "'model=mine.yaml' behind another job file");
}

TEST(JobErrorTest, LossThatCannotBe) {
  const auto wrong = [](const std::string& train) { return error_of("train: {" + train + "}\n"); };
  EXPECT_EQ(
      wrong("loss: mean"),
      "job.yaml:2:15: train.loss: expected one of cross_entropy, mse, binary_cross_entropy, got 'mean'");
  for (const std::string bad : {"1", "-0.1", "nan", "[0.1]"})
    EXPECT_NE(
        wrong("label_smoothing: " + bad).find("train.label_smoothing: expected a number from 0, below 1"),
        std::string::npos)
        << bad;
  for (const std::string bad :
       {"[]", "[0, 0]", "[-1, 1]", "[nan, 1]", "[.inf, 1]", "[1e-7, 1]", "[1e7, 1]", "3", "even"})
    EXPECT_NE(
        wrong("class_weights: " + bad)
            .find("train.class_weights: expected none, balanced, or a list of one number for each class"),
        std::string::npos)
        << bad;
  EXPECT_EQ(wrong("class_weights: [1, 2]"),
            "job.yaml:2:24: train.class_weights: 2 numbers for the 10 classes of mnist; give one for each, "
            "in the order "
            "of the labels");
  EXPECT_EQ(
      wrong("loss: mse, class_weights: balanced"),
      "job.yaml:2:35: train.class_weights are for train.loss cross_entropy, and it is mse; leave them out");
}

TEST(JobErrorTest, KeyOfAnotherSectionIsPointedTo) {
  EXPECT_EQ(error_of("epochs: 3\n"), "job.yaml:2:1: unknown key 'epochs' (did you mean 'train.epochs'?)");
  EXPECT_EQ(error_of("train: {grain: 3}\n"),
            "job.yaml:2:9: unknown key 'grain' in 'train' (did you mean 'parallel.grain'?)");
}

TEST(JobErrorTest, NameOfAnotherProgramIsTranslated) {
  EXPECT_EQ(error_of("train: {learning_rate: 3}\n"),
            "job.yaml:2:9: unknown key 'learning_rate' in 'train' (did you mean 'train.optimizer.lr'?)");
  EXPECT_EQ(error_of("data: {batch_size: 3}\n"),
            "job.yaml:2:8: unknown key 'batch_size' in 'data' (did you mean 'data.global_batch'?)");
}

TEST(JobErrorTest, StrangeKeyGetsTheListOfKnownOnes) {
  EXPECT_EQ(error_of("flavour: red\n"),
            "job.yaml:2:1: unknown key 'flavour'; known: model, data, train, parallel, run, inject");
}

TEST(JobErrorTest, HalfAFaultIsNone) {
  EXPECT_EQ(
      error_of("inject: {rank: 2, step: 7}\n"),
      "job.yaml:2:25: inject needs what happens: inject.what, one of die, stop, delay 3s, slow 10%, "
      "busy 10%, drop-network, flip-bit, flip-bits sums, stuck-bit link, stale-message, swapped-message, "
      "wrong-forward, wrong-lane, nan, desync");
  EXPECT_EQ(error_of("inject: {rank: 2, what: die}\n"),
            "job.yaml:2:25: inject needs the step before which it happens: inject.step, counted from 1");
  for (const char* what : {"dei", "die 3s", "delay", "delay 3", "delay -1s", "delay 1e99s", "slow 3s", "busy",
                           "busy 3s", "slow 0%", "delay  3s", "delay nans", "delay infs"}) {
    const std::string error = error_of(fmt::format("inject: {{step: 7, what: {}}}\n", what));
    EXPECT_TRUE(error.starts_with("job.yaml:2:25: inject.what: expected one of none, die, stop, delay 3s"))
        << error;
  }
}

TEST(JobErrorTest, DottedKeyInAFileIsRefused) {
  EXPECT_EQ(error_of("train.epochs: 3\n"),
            "job.yaml:2:1: 'train.epochs' has a dot; nest keys instead: 'train: {epochs: 3}'");
}

TEST(JobErrorTest, WrongTypesSayWhatWasExpected) {
  const std::string epochs =
      "job.yaml:2:17: train.epochs: expected a whole number from 1 to 1000000000, got ";
  EXPECT_EQ(error_of("train: {epochs: abc}\n"), epochs + "'abc'");
  EXPECT_EQ(error_of("train: {epochs: 1.5}\n"), epochs + "'1.5'");
  EXPECT_EQ(error_of("train: {epochs: 1e3}\n"), epochs + "'1e3'");
  EXPECT_EQ(error_of("train: {epochs: '3'}\n"), epochs + "'3' in quotes");
  EXPECT_EQ(error_of("train: {epochs: [3]}\n"), epochs + "[3]");
  EXPECT_EQ(error_of("train: {epochs: {a: 3}}\n"), epochs + "a map");
  EXPECT_EQ(error_of("train: {epochs: }\n"),
            "job.yaml:2:9: train.epochs: expected a whole number from 1 to 1000000000, got nothing");
  EXPECT_EQ(error_of("data: {shuffle: maybe}\n"),
            "job.yaml:2:17: data.shuffle: expected true or false, got 'maybe'");
  EXPECT_EQ(error_of("train: {seed: -1}\n"),
            "job.yaml:2:15: train.seed: expected a whole number from 0 to 18446744073709551615, got '-1'");
}

TEST(JobErrorTest, SectionMustBeAMap) {
  EXPECT_EQ(error_of("run: 5\n"),
            "job.yaml:2:6: run: expected a map with some of dir, checkpoint_every_steps, log_every_steps, "
            "resume, on_save_error, max_seconds, print_loss_every_steps, print_shapes, trail, curve, report, "
            "tensorboard, trace, keep, got '5'");
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("- model\n", "job.yaml"); }),
            "job.yaml:1:1: a job file is a map such as 'model: net'");
}

TEST(JobErrorTest, EveryRangeHasItsEnds) {
  const auto refused = [](const std::string& yaml) { return !error_of(yaml).empty(); };
  for (const char* yaml : {"data: {global_batch: 0}",
                           "data: {global_batch: -1}",
                           "data: {std: 0}",
                           "data: {std: -1}",
                           "data: {mean: nan}",
                           "train: {epochs: 0}",
                           "train: {max_steps: -1}",
                           "train: {optimizer: {lr: 0}}",
                           "train: {optimizer: {lr: -0.1}}",
                           "train: {optimizer: {lr: .inf}}",
                           "train: {optimizer: {momentum: 1}}",
                           "train: {optimizer: {momentum: -0.1}}",
                           "train: {optimizer: {weight_decay: -1}}",
                           "parallel: {ranks: -1}",
                           "parallel: {threads: 0}",
                           "parallel: {grain: 0}",
                           "parallel: {grain: 4097}",
                           "parallel: {bucket_bytes: 0}",
                           "parallel: {bucket_bytes: 2GiB}",
                           "parallel: {timeout_seconds: 0}",
                           "parallel: {check_replicas_every_steps: -1}",
                           "run: {log_every_steps: -1}",
                           "run: {checkpoint_every_steps: -1}",
                           "run: {dir: ''}",
                           R"(run: {dir: "a\nb"})",
                           R"(run: {dir: "\e[0m"})"}) {
    EXPECT_TRUE(refused(yaml)) << yaml;
  }
}

TEST(JobErrorTest, RangesAreSpeltOut) {
  EXPECT_EQ(error_of("train: {optimizer: {lr: 0}}"),
            "job.yaml:2:25: train.optimizer.lr: expected a number above 0, at most 1e+06, got '0'");
  EXPECT_EQ(error_of("train: {optimizer: {momentum: 1}}"),
            "job.yaml:2:31: train.optimizer.momentum: expected a number from 0, below 1, got '1'");
  EXPECT_EQ(error_of("parallel: {bucket_bytes: 64KB}"),
            "job.yaml:2:26: parallel.bucket_bytes: expected auto or a size from 4 to 1GiB such as 65536, "
            "64KiB or 1MiB, "
            "got '64KB'");
}

/// Whatever the key: what is 0, or no longer below 1, once it is a float.
TEST(JobErrorTest, NumbersThatFp32CannotHoldAreRefused) {
  EXPECT_EQ(
      error_of("train: {optimizer: {lr: 1e-320}}"),
      "job.yaml:2:25: train.optimizer.lr: expected a number above 0, at most 1e+06, got '1e-320', which is 0 "
      "as fp32, whose smallest number is 1.4e-45");
  EXPECT_EQ(error_of("train: {optimizer: {momentum: 0.99999999}}"),
            "job.yaml:2:31: train.optimizer.momentum: expected a number from 0, below 1, got '0.99999999', "
            "which is "
            "1 as fp32, whose largest number below 1 is 0.99999994");
  parse_job("{model: net, train: {optimizer: {lr: 1.4e-45, momentum: 0.99999994}}}", "job.yaml");
  test::expect_words(error_of("train: {optimizer: {kind: adam, betas: [0.9, 0.99999999]}}"), {"1 as fp32"});
  int looked_at = 0;
  for (const JobKey& key : job_schema()) {
    Job job;
    const bool takes_a_number = key.read(YAML::Node("0.5"), job) || key.read(YAML::Node("5.5"), job);
    if (!takes_a_number || !key.choices.empty() || key.read(YAML::Node("text"), job)) continue;
    ++looked_at;
    EXPECT_FALSE(key.read(YAML::Node("1e-50"), job)) << key.path;
    if (key.read(YAML::Node("0.99999999"), job)) {
      EXPECT_TRUE(key.read(YAML::Node("1"), job)) << key.path << " is 1 as fp32";
    }
  }
  EXPECT_GT(looked_at, 15);
  test::expect_words(
      error_of("train: {optimizer: {lr: 1e-40, lr_scaling: {rule: linear, base_batch: 1000000000}}}"),
      {"is 0 as fp32"});
}

TEST(JobErrorTest, ChoiceOutsideTheListGetsASuggestion) {
  EXPECT_EQ(error_of("data: {set: fashion_mnist}\n"),
            fmt::format("job.yaml:2:13: data.set: expected one of {}, got 'fashion_mnist' (did you mean "
                        "'fashion-mnist'?)",
                        fmt::join(set_names(), ", ")));
  EXPECT_EQ(error_of("parallel: {determinism: on}\n"),
            "job.yaml:2:25: parallel.determinism: expected one of world, off, got 'on'");
}

TEST(JobErrorTest, AugmentationSaysWhichEntryIsWrongAndWhatWouldBeRight) {
  const auto error = [](const std::string& list) { return error_of("data: {augment: " + list + "}\n"); };
  const std::string
      place = "job.yaml:2:17: data.augment: ",
      kinds =
          "; expected one of crop, resized_crop, flip, rotate, shift, scale, jitter, erase, cutout, "
          "mixup, cutmix";
  EXPECT_EQ(error("crop"),
            place +
                "expected a list such as [{crop: {padding: 4}}, {flip: {horizontal: 0.5}}], or [] for "
                "none, got 'crop'");
  EXPECT_EQ(error("[crop]"),
            place + "entry 1: expected one kind and its options, such as crop: {padding: 4}, got 'crop'");
  EXPECT_EQ(error("[{}]"),
            place + "entry 1: expected one kind and its options, such as crop: {padding: 4}, got a map");
  EXPECT_EQ(error("[{crop: {padding: 4}}, {rotat: {degrees: 5}}]"),
            place + "entry 2: unknown kind 'rotat' (did you mean 'rotate'?)" + kinds);
  EXPECT_EQ(error("[{RandomHorizontalFlip: {}}]"),
            place + "entry 1: unknown kind 'RandomHorizontalFlip' (did you mean 'flip'?)" + kinds);
  EXPECT_EQ(error("[{crop: 4}]"),
            place + "entry 1: crop: expected its options, such as crop: {padding: ...}, got '4'");
  EXPECT_EQ(error("[{crop: {}}]"),
            place + "entry 1: crop needs padding, a whole number from 1 to 1024: write crop: {padding: ...}");
  EXPECT_EQ(error("[{crop: {paddin: 4}}]"),
            place + "entry 1: crop: unknown option 'paddin' (did you mean 'padding'?); expected padding");
  for (const std::string wrong : {"0", "-1", "1.5", "1025", "1e300", "four"})
    EXPECT_EQ(error("[{crop: {padding: " + wrong + "}}]"),
              place + "entry 1: crop.padding: expected a whole number from 1 to 1024, got '" + wrong + "'");
  EXPECT_EQ(error("[{flip: {horizontal: 1.1}}]"),
            place + "entry 1: flip.horizontal: expected a number from 0 to 1, got '1.1'");
  EXPECT_EQ(error("[{flip: {horizontal: 0}}]"),
            place + "entry 1: flip changes nothing; give horizontal or vertical above 0");
  EXPECT_EQ(error("[{rotate: {degrees: 181}}]"),
            place + "entry 1: rotate.degrees: expected a number from 0.001 to 180, got '181'");
  EXPECT_EQ(error("[{scale: {factor: 2}}]"),
            place +
                "entry 1: scale.factor: expected the least and the largest value, "
                "from 0.125 to 8, such as [0.9, 1.1], got '2'");
  EXPECT_EQ(error("[{scale: {factor: [1.1, 0.9]}}]"),
            place + "entry 1: scale.factor: 1.1 is above 0.9; write [0.9, 1.1]");
  EXPECT_EQ(
      error("[{jitter: {contrast: 0.1}}, {flip: {vertical: 1}}]"),
      place +
          "entry 2: flip stands behind jitter; put what moves pixels in front of jitter, erase and cutout");
  EXPECT_EQ(error("[{mixup: {alpha: 0}}]"),
            place + "entry 1: mixup.alpha: expected a number from 0.01 to 8, got '0'");
  EXPECT_EQ(error("[{CutMix: {}}]"),
            place + "entry 1: unknown kind 'CutMix' (did you mean 'cutmix'?)" + kinds);
  EXPECT_EQ(error("[{cutmix: {}}, {cutout: {size: 3}}]"),
            place + "entry 2: cutout stands behind cutmix; put mixup and cutmix last");
  EXPECT_EQ(
      error("[{mixup: {alpha: 0.2}}, {cutmix: {}}]"),
      place +
          "entry 2: cutmix stands behind mixup, which mixes every image; give mixup a probability below 1");
  EXPECT_EQ(
      error_of("data: {augment: [{mixup: {}}]}\ntrain: {loss: mse}\n"),
      place + "mixup and cutmix mix labels for train.loss cross_entropy, and it is mse; leave them out");
  std::string many = "[{flip: {vertical: 1}}";
  for (int i = 1; i < 1000; ++i) many += ", {flip: {vertical: 1}}";
  EXPECT_EQ(error(many + "]"), place + "1000 entries; at most 16");
  EXPECT_EQ(
      message_of<ConfigError>(
          [] { parse_job("model: net", "job.yaml", {"data.augment=[{flip: {up: 1}}]"}); }),
      "override 'data.augment=[{flip: {up: 1}}]': data.augment: entry 1: flip: unknown option 'up'; expected "
      "horizontal, vertical");
}

TEST(JobErrorTest, ModelMustBeGiven) {
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("train: {epochs: 3}\n", "job.yaml"); }),
            "job.yaml: no model given; add a line such as 'model: net'");
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("", "job.yaml"); }),
            "job.yaml: no model given; add a line such as 'model: net'");
}

TEST(JobErrorTest, NesterovNeedsMomentum) {
  EXPECT_EQ(error_of("train:\n  optimizer:\n    momentum: 0\n    nesterov: true\n"),
            "job.yaml:5:15: train.optimizer.nesterov needs momentum above 0; set train.optimizer.momentum");
  const std::string dampened =
      "train.optimizer.dampening needs momentum above 0, and no nesterov; leave it out";
  EXPECT_EQ(error_of("train:\n  optimizer:\n    momentum: 0\n    dampening: 0.1\n"),
            "job.yaml:5:16: " + dampened);
  EXPECT_EQ(error_of("train:\n  optimizer:\n    nesterov: true\n    dampening: 0.1\n"),
            "job.yaml:5:16: " + dampened);
}

TEST(JobErrorTest, ClippingIsOfOneKindAndOfAWholeBatch) {
  EXPECT_EQ(error_of("train:\n  clip_norm: 1\n  clip_value: 0.5\n"),
            "job.yaml:4:15: train.clip_norm: 1 and train.clip_value: 0.5 both clip the gradient; remove one");
  EXPECT_EQ(error_of("train: {clip_norm: 1}\nparallel: {strategy: hogwild, determinism: off, device: cpu}\n"),
            "job.yaml:2:20: train.clip_norm: the norm is that of the gradient of a whole global batch, which "
            "parallel.strategy hogwild never has; use parallel.strategy=data, or train.clip_value");
  parse_job("model: net\ntrain: {clip_value: 1}\nparallel: {strategy: hogwild, determinism: off}\n",
            "job.yaml");
  for (const char* key : {"clip_norm", "clip_value"})
    for (const char* value : {"-1", "nan", "inf", "1e-50", "[1]", "true"})
      EXPECT_NE(error_of(fmt::format("train: {{{}: {}}}\n", key, value))
                    .find(fmt::format("train.{}: expected a number from 0, at most ", key)),
                std::string::npos)
          << key << ": " << value;
}

TEST(JobErrorTest, GroupsAreMapsOfThreeKeys) {
  const std::string expected = "job.yaml:2:17: train.groups: expected a list of groups, each with match";
  for (const char* groups :
       {"{match: a}", "[a]", "[{}]", "[{lr_factor: 2}]", "[{match: }]", "[{match: ''}]",
        "[{match: a, lr_factor: 0}]", "[{match: a, lr_factor: -1}]", "[{match: a, lr_factor: 1e7}]",
        "[{match: a, weight_decay: -1}]", "[{match: a, weight_decay: [1]}]", "[{match: [a], lr_factor: 2}]"})
    EXPECT_EQ(error_of(fmt::format("train: {{groups: {}}}\n", groups)).substr(0, expected.size()), expected)
        << groups;
  EXPECT_EQ(
      error_of("train: {groups: [{match: a}, {match: b, lr_fator: 2}]}\n"),
      "job.yaml:2:41: train.groups: unknown key 'lr_fator' (did you mean 'lr_factor'?); a group has match, "
      "lr_factor, weight_decay");
  EXPECT_EQ(error_of("train: {groups: [{match: a, lr: 2}]}\n"),
            "job.yaml:2:29: train.groups: unknown key 'lr' (did you mean 'lr_factor'?); a group has match, "
            "lr_factor, weight_decay");
  EXPECT_EQ(error_of("train: {groups: [{match: a*, lr_factor: 1e-38}], optimizer: {lr: 1e-20}}\n"),
            "job.yaml:2:17: train.groups: lr_factor: 1e-38 of 'a*' times the rate, 1e-20, is 0 as fp32, "
            "whose smallest "
            "number is 1.4e-45");
  EXPECT_EQ(error_of("train: {groups: [{match: a*, weight_decay: 1e6}], optimizer: {weight_decay: 1e-30}}\n"),
            "job.yaml:2:17: train.groups: weight_decay: 1000000 of 'a*' and train.optimizer.weight_decay: "
            "1e-30 are too "
            "far apart; give 0, or no more than 1e30 times the other");
  const std::string names = "job.yaml:2:17: train.freeze: expected a list of names";
  for (const char* freeze : {"[[a]]", "{a: 1}", "['']", "''"})
    EXPECT_EQ(error_of(fmt::format("train: {{freeze: {}}}\n", freeze)).substr(0, names.size()), names)
        << freeze;
  EXPECT_NE(error_of("train: {freeze: " + std::string(201, 'a') + "}\n"), "");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "a, ";
  EXPECT_NE(error_of("train: {freeze: [" + many + "]}\n"), "");
}

TEST(JobErrorTest, UnknownOptimizerOrScheduleGetsASuggestion) {
  EXPECT_EQ(error_of("train: {optimizer: {kind: adan}}\n"),
            "job.yaml:2:27: train.optimizer.kind: expected one of " + all_optimizers() +
                ", got 'adan' (did you mean 'adam'?)");
  EXPECT_EQ(error_of("train: {schedule: {kind: cosin}}\n"),
            "job.yaml:2:26: train.schedule.kind: expected one of constant, step, multistep, exponential, "
            "polynomial, "
            "cosine, one_cycle, got 'cosin' (did you mean 'cosine'?)");
  EXPECT_EQ(error_of("train: {optimizer: {lr_scaling: {rule: lin}}}\n"),
            "job.yaml:2:40: train.optimizer.lr_scaling.rule: expected one of none, linear, sqrt, got 'lin'");
}

TEST(JobErrorTest, KeysOfOtherChoicesAreRefusedWithTheirPlace) {
  EXPECT_EQ(error_of("train:\n  optimizer: {kind: adam, momentum: 0.9}\n"),
            "job.yaml:3:37: train.optimizer.momentum is for kind sgd, rmsprop, lars; remove it for adam");
  EXPECT_EQ(error_of("train: {optimizer: {betas: [0.9, 0.99]}}\n"),
            "job.yaml:2:28: train.optimizer.betas is for kind adam, adamw, lion, lamb; remove it for sgd");
  EXPECT_EQ(
      error_of("train: {schedule: {kind: cosine, gamma: 0.1}}\n"),
      "job.yaml:2:41: train.schedule.gamma is for kind step, multistep, exponential; remove it for cosine");
  EXPECT_EQ(
      error_of("train: {optimizer: {lr_scaling: {base_batch: 64}}}\n"),
      "job.yaml:2:46: train.optimizer.lr_scaling.base_batch is for rule linear, sqrt; remove it for none");
}

TEST(JobErrorTest, WhatAScheduleNeedsIsAskedFor) {
  EXPECT_EQ(error_of("train: {schedule: {kind: step}}\n"),
            "job.yaml:2:26: train.schedule.kind step needs train.schedule.step_size: the rate falls whenever "
            "so many "
            "have passed; expected a whole number from 1 to 1000000000000");
  EXPECT_EQ(error_of("train: {schedule: {kind: multistep}}\n").substr(0, 69),
            "job.yaml:2:26: train.schedule.kind multistep needs train.schedule.mil");
}

TEST(JobErrorTest, ListsAreListsOfNumbersInRange) {
  const std::string betas =
      ": train.optimizer.betas: expected a list of two numbers from 0, below 1, such as [0.9, 0.999], got ";
  const auto error_of_betas = [](const std::string& list) {
    return error_of("train: {optimizer: {kind: adam, betas: " + list + "}}");
  };
  for (const std::string list : {"[0.9, 1]", "[0.9]", "[0.9, 0.9, 0.9]", "[]", "[0.9, x]", "[-0.1, 0.9]"})
    EXPECT_EQ(error_of_betas(list), "job.yaml:2:40" + betas + list);
  EXPECT_EQ(error_of("train:\n  optimizer:\n    kind: adam\n    betas:\n      - 0.9, 0.999\n"),
            "job.yaml:6:7" + betas + "['0.9, 0.999']")
      << "one entry";
  const std::string long_list = "[" + std::string(60, '1') + ", 0.9]";
  for (const std::string& list : {std::string("['0.9', 0.9]"), std::string("[[0.9], 0.9]"), long_list})
    EXPECT_EQ(error_of_betas(list), "job.yaml:2:40" + betas + "a list") << list;
  EXPECT_EQ(error_of("train: {optimizer: {kind: adam, betas: 0.9}}").substr(0, 36),
            "job.yaml:2:40: train.optimizer.betas");
  for (const char* list : {"[3, 3]", "[5, 3]"})
    EXPECT_EQ(error_of("train: {schedule: {kind: multistep, milestones: " + std::string(list) + "}}"),
              "job.yaml:2:49: train.schedule.milestones: each must be larger than the one before");
  EXPECT_EQ(error_of("train: {schedule: {kind: multistep, milestones: [0.5]}}"),
            "job.yaml:2:49: train.schedule.milestones: expected a list of whole numbers from 1 on such as "
            "[30, 80], "
            "got [0.5]");
  EXPECT_EQ(error_of("train: {optimizer: {lr: [0.1]}}"),
            "job.yaml:2:25: train.optimizer.lr: expected a number above 0, at most 1e+06, got [0.1]");
}

/// A gradient that is zero, as behind a dead unit, would be divided by zero.
TEST(JobErrorTest, DivisorIsNeverZero) {
  EXPECT_EQ(error_of("train: {optimizer: {kind: adam, eps: 0}}"),
            "job.yaml:2:38: train.optimizer.eps: expected a number above 0, at most 1, got '0'");
}

TEST(JobErrorTest, WarmupFitsTheRun) {
  EXPECT_EQ(error_of("train: {epochs: 3, schedule: {warmup_epochs: 3}}"),
            "job.yaml:2:46: train.schedule.warmup_epochs: 3 is not shorter than the run, which has "
            "train.epochs: 3");
  EXPECT_EQ(
      error_of("train: {schedule: {warmup_epochs: 1, warmup_steps: 3}}"),
      "job.yaml:2:52: the warm-up is either train.schedule.warmup_steps or train.schedule.warmup_epochs; "
      "remove one");
  EXPECT_EQ(error_of("train: {schedule: {warmup_steps: -1}}").substr(0, 44),
            "job.yaml:2:34: train.schedule.warmup_steps: ");
}

TEST(JobErrorTest, RatesAndMomentumsFitTogether) {
  EXPECT_EQ(error_of("train: {optimizer: {lr: 0.1}, schedule: {kind: cosine, min_lr: 0.2}}"),
            "job.yaml:2:64: train.schedule.min_lr, 0.2, must not be above train.optimizer.lr, 0.1");
  EXPECT_EQ(error_of("train: {schedule: {kind: one_cycle, base_momentum: 0.97}}"),
            "job.yaml:2:52: train.schedule.base_momentum, 0.97, must not be above "
            "train.schedule.max_momentum, 0.95");
  EXPECT_EQ(error_of("train: {schedule: {kind: one_cycle, max_momentum: 0.5}}"),
            "job.yaml:2:51: train.schedule.base_momentum, 0.85, must not be above "
            "train.schedule.max_momentum, 0.5");
}

TEST(JobErrorTest, ShortNamesAreNotTakenForOthers) {
  EXPECT_EQ(
      error_of("train: {optimizer: {wd: 0.1}}"),
      "job.yaml:2:21: unknown key 'wd' in 'train.optimizer' (did you mean 'train.optimizer.weight_decay'?)");
  EXPECT_EQ(error_of("train: {optimizer: {qq: 0.1}}").substr(0, 62),
            "job.yaml:2:21: unknown key 'qq' in 'train.optimizer'; known: k");
}

TEST(JobErrorTest, NamesOfPytorchsAreTranslated) {
  EXPECT_EQ(error_of("train: {scheduler: {name: cosine}}"),
            "job.yaml:2:9: unknown key 'scheduler' in 'train' (did you mean 'schedule'?)");
  EXPECT_EQ(error_of("train: {schedule: {T_max: 10}}"),
            "job.yaml:2:20: unknown key 'T_max' in 'train.schedule' (did you mean 'train.schedule.total'?)");
  EXPECT_EQ(
      error_of("train: {schedule: {eta_min: 10}}"),
      "job.yaml:2:20: unknown key 'eta_min' in 'train.schedule' (did you mean 'train.schedule.min_lr'?)");
}

TEST(JobErrorTest, ClassesAreBalancedByShuffling) {
  EXPECT_EQ(error_of("data: {shuffle: no, balance_classes: yes}\n"),
            "job.yaml:2:38: data.balance_classes: the samples of a class are drawn at random, so it needs "
            "data.shuffle; remove data.shuffle: false, or data.balance_classes");
}

TEST(JobErrorTest, NumbersOfChannelsAreNumbersAsManyAsThereAreChannels) {
  const char* expected =
      "expected auto, a number from 1e-06, at most 1e+06, or a list of such numbers, one for each channel, "
      "got ";
  for (const auto& [value, shown] : {std::pair{"0", "'0'"},
                                     {"[0.5, 0]", "[0.5, 0]"},
                                     {"[]", "[]"},
                                     {"[auto]", "[auto]"},
                                     {"[[1]]", "a list"},
                                     {"{a: 1}", "a map"},
                                     {"'1'", "'1' in quotes"}}) {
    EXPECT_EQ(error_of(fmt::format("data: {{set: idx, root: d, std: {}}}\n", value)),
              fmt::format("job.yaml:2:32: data.std: {}{}", expected, shown));
  }
  EXPECT_EQ(error_of("data: {mean: [0.1, 0.2, 0.3]}\n"),
            "job.yaml:2:14: data.mean: 3 numbers, but the images of mnist have 1 channel; give one, or one "
            "for each");
}

TEST(JobErrorTest, PeoplesOwnDataAreWhereTheJobSays) {
  EXPECT_EQ(error_of("data: {set: idx}\n"),
            "job.yaml:2:13: data.set idx needs the directory that holds its files; set data.root");
  EXPECT_EQ(error_of("data: {root: auto, set: idx}\n"),
            "job.yaml:2:14: data.set idx needs the directory that holds its files; set data.root");
}

TEST(JobErrorTest, RanksBelongToBackendsOfThreads) {
  EXPECT_EQ(error_of("parallel: {backend: mpi, ranks: 4}\n"),
            "job.yaml:2:33: parallel.ranks is for backends thread and nccl; remove it and start with 'mpirun "
            "-np 4'");
}

TEST(JobErrorTest, WhatWentIsNamedWithWhatToUseInstead) {
  EXPECT_EQ(
      error_of("parallel: {backend: peers}\n"),
      "job.yaml:2:21: parallel.backend=peers is no longer there: use nccl, which adds up sums of all sizes");
  EXPECT_EQ(error_of("parallel: {count_lost_updates: true}\n"),
            "job.yaml:2:12: parallel.count_lost_updates is no longer there: use parallel.strategy=data, "
            "which loses none");
  EXPECT_EQ(error_of("parallel: {on_wrong: continue}\n"),
            "job.yaml:2:12: parallel.on_wrong is no longer there: use launch/run --restarts, which goes on "
            "from the newest "
            "checkpoint without the hosts that were named");
  EXPECT_NO_THROW(
      parse_job("model: net\nparallel: {count_lost_updates: false, on_wrong: stop}\n", "job.yaml"))
      << "job files of earlier runs have it";
  EXPECT_EQ(
      error_of("parallel: {graph: overlapped}\n"),
      "job.yaml:2:19: parallel.graph=overlapped is no longer there: use on, which gives the same weights");
}

TEST(JobErrorTest, ResumeNoIsNotADirectory) {
  EXPECT_EQ(error_of("run: {resume: no}\n"),
            "job.yaml:2:15: run.resume: expected auto, never or a checkpoint directory, got 'no'");
}

TEST(JobErrorTest, UnsafeYamlIsRefusedBeforeTheSchemaLooks) {
  EXPECT_EQ(error_of("train: {epochs: 3}\ntrain: {seed: 1}\n"),
            "job.yaml:3:1: key 'train' is given twice (first on line 2); remove one");
  EXPECT_EQ(error_of("train: &t {epochs: 3}\n"),
            "job.yaml:2:8: anchors (&name) are not accepted; remove '&t'");
  EXPECT_EQ(error_of("run: {dir: !!str x}\n"),
            "job.yaml:2:12: tags (!name) are not accepted; write the plain value");
}

TEST(JobErrorTest, TracedStepsAreAFewInOrder) {
  for (const char* text : {"9", "0..3", "3..", "..3", "a..b", "3...7", "-1..2", "1..99999999999"}) {
    EXPECT_EQ(
        error_of(std::string("run: {trace: ") + text + "}\n"),
        std::string("job.yaml:2:14: run.trace: expected off, or the first and the last step, counted from 1, "
                    "such as 100..110, got '") +
            text + "'");
  }
  EXPECT_EQ(error_of("run: {trace: 9..3}\n"),
            "job.yaml:2:14: run.trace: 9..3 ends before it begins; write 3..9");
  EXPECT_EQ(
      error_of("run: {trace: 5..1005}\n"),
      "job.yaml:2:14: run.trace: 5..1005 are 1,001 steps, and at most 1,000 can be traced; write 5..1004");
}

TEST(JobErrorTest, WhatIsSaidOfEachRanksSamplesDoesNotGoWithRanksThatHaveLayers) {
  const std::string pipeline = "parallel:\n  strategy: pipeline\n";
  EXPECT_EQ(error_of(pipeline + "data: {per_rank_batch: 64}\n"),
            "job.yaml:4:24: data.per_rank_batch: the ranks of parallel.strategy pipeline have layers, not "
            "samples of "
            "their own; give data.global_batch instead");
  EXPECT_NE(error_of(pipeline + "run: {print_shapes: yes}\n").find("remove it"), std::string::npos);
  EXPECT_EQ(error_of(pipeline + "data: {micro_batch: 16}\n"),
            "job.yaml:4:21: data.micro_batch: parallel.strategy pipeline computes grain by grain, so its "
            "micro-batches are those of parallel.grain: 64; remove data.micro_batch");
  EXPECT_EQ(error_of(pipeline + "train: {recompute: true}\n"),
            "job.yaml:4:20: train.recompute: parallel.strategy pipeline keeps all activations; use "
            "parallel.strategy=data, or remove the key");
  EXPECT_EQ(
      error_of("data: {micro_batch: -1}\n"),
      "job.yaml:2:21: data.micro_batch: expected auto or a whole number from 0 to 1000000000, got '-1'");
}

TEST(JobErrorTest, AScaleOfInitialWeightsDoesNotGoWithAFileOfThem) {
  EXPECT_EQ(error_of("train: {initial_weights: w.safetensors, initial_scale: 0.01}\n"),
            "job.yaml:2:56: train.initial_scale: the run starts from the weights of train.initial_weights; "
            "remove one");
}

}  // namespace
}  // namespace lockstep::job_error_test
