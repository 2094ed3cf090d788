// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every way in which a job file can be wrong, with the whole message: job_errors.txt, and what is no text.
#include "data/sets/catalogue.hpp"
#include "tests/support/message_table.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

namespace lockstep::job_error_test {
namespace {

/// Error of a job whose first line is `model: net`, so that the given text starts on line 2.
std::string error_of(const std::string& yaml) {
  return message_of<ConfigError>([&] { parse_job("model: net\n" + yaml, "job.yaml"); });
}

/// The message about a text of the table, behind the place that it begins with.
std::string said_of(const std::string& text) {
  if (!text.starts_with("= ")) return error_of(text).substr(std::strlen("job.yaml:"));
  const std::string change = text.substr(2), begin = "override '" + change + "'";
  const std::string said = message_of<ConfigError>([&] { parse_job("model: net\n", "job.yaml", {change}); });
  EXPECT_TRUE(said.starts_with(begin)) << said;
  return said.substr(std::min(begin.size(), said.size()));
}

TEST(JobErrorTest, EveryWrongJobIsToldWhatTheTableSays) {
  for (test::SaidOf row : test::read_messages("tests/trainer/config/job_errors.txt")) {
    test::replace_all(row.message, "{optimizers}",
                      fmt::format("{}", fmt::join(choices_of("train.optimizer"), ", ")));
    test::replace_all(row.message, "{sets}", fmt::format("{}", fmt::join(set_names(), ", ")));
    row.expect(said_of(row.text));
  }
}

TEST(JobErrorTest, ALowestRateIsComparedWithTheScaledOneOnceTheBatchIsKnown) {
  const std::string train =
      "train: {optimizer: {lr: 0.1, lr_scaling: {rule: linear, base_batch: 64}}, "
      "schedule: {kind: cosine, min_lr: 0.2}}\n";
  EXPECT_NO_THROW(parse_job("model: net\n" + train, "job.yaml"));
  const Job of_ranks = parse_job("model: net\ndata: {per_rank_batch: 8}\n" + train, "job.yaml");
  EXPECT_EQ(for_ranks(of_ranks, 16).data.global_batch, 128);
  const std::string refusal =
      "job.yaml:3:108: train.schedule.min_lr, 0.2, must not be above train.optimizer.lr, 0.05 after "
      "train.optimizer.lr_scaling to a global batch of 32";
  EXPECT_EQ(message_of<ConfigError>([&] { for_ranks(of_ranks, 4); }), refusal);
  const Job of_both =
      parse_job("model: net\ndata: {per_rank_batch: 8, global_batch: 32}\n" + train, "job.yaml");
  EXPECT_EQ(message_of<ConfigError>([&] { for_ranks(of_both, 4); }), refusal);
  EXPECT_EQ(error_of("data: {per_rank_batch: 8}\n"
                     "train: {optimizer: {lr: 0.1}, schedule: {kind: cosine, min_lr: 0.2}}\n"),
            "job.yaml:3:64: train.schedule.min_lr, 0.2, must not be above train.optimizer.lr, 0.1");
}

TEST(JobErrorTest, NetworkInPlaceOfAJobIsToldSo) {
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("name: mine\nlayers: [flatten]\n", "mine.yaml"); }),
            "mine.yaml:2:9: this file describes a network, not a job; a job names it: 'model: mine.yaml', or "
            "'model=mine.yaml' after another job file");
}

/// Whatever the key: what is 0, or no longer below 1, once it is a float.
TEST(JobErrorTest, NumbersThatFp32CannotHoldAreRefused) {
  parse_job("{model: net, train: {optimizer: {lr: 1.4e-45, momentum: 0.99999994}}}", "job.yaml");
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
      error_of("train: {optimizer: {kind: adam, betas: [0.9, 0.99999999]}}") +
          error_of("train: {optimizer: {lr: 1e-40, lr_scaling: {rule: linear, base_batch: 1000000000}}}"),
      {"1 as fp32", "is 0 as fp32"});
}

TEST(JobErrorTest, ModelMustBeGiven) {
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("train: {epochs: 3}\n", "job.yaml"); }),
            "job.yaml: no model given; add a line such as 'model: net'");
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("", "job.yaml"); }),
            "job.yaml: no model given; add a line such as 'model: net'");
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("[net]", "job.yaml"); }),
            "job.yaml:1:1: a job file is a map such as 'model: net'");
}

TEST(JobErrorTest, ListsOfNamesAreNeitherLongNorOfLongNames) {
  EXPECT_NE(error_of("train: {freeze: " + std::string(201, 'a') + "}\n"), "");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "a, ";
  EXPECT_NE(error_of("train: {freeze: [" + many + "]}\n"), "");
  EXPECT_NE(error_of("run: {dir: " + std::string(4097, 'a') + "}\n"), "");
  parse_job(
      "model: net\ntrain: {freeze: [" + many.substr(3) + "]}\nrun: {dir: " + std::string(4096, 'a') + "}\n",
      "job.yaml");
  parse_job("model: net\ntrain: {freeze: " + std::string(200, 'a') + "}\n", "job.yaml");
}

TEST(JobErrorTest, ListsOfSixtyCharactersAreShownAndHaveNoMoreNumbersThanThereAreChannels) {
  const auto said = [](std::size_t letters) {
    return error_of("train: {epochs: [" + std::string(letters, 'a') + "]}\n");
  };
  test::expect_words(said(58), {", got [" + std::string(58, 'a') + "]"});
  test::expect_words(said(59), {", got a list"});
  const auto means = [](int count) {
    std::string list = "0";
    for (int i = 1; i < count; ++i) list += ", 0";
    return "data: {set: idx, root: d, mean: [" + list + "]}\n";
  };
  EXPECT_EQ(parse_job("model: net\n" + means(4096), "job.yaml").data.mean.size(), 4096U);
  test::expect_words(error_of(means(4097)), {"data.mean: expected auto, ", ", got a list"});
}

TEST(JobErrorTest, WhatIsJustWithinTheRulesIsNoError) {
  for (const char* job :
       {"train: {clip_norm: 1}",
        "train: {clip_value: 1}\nparallel: {strategy: hogwild, determinism: off}",
        "train: {epochs: 3, schedule: {warmup_epochs: 2}}",
        "train: {epochs: 3, swa: {from_epoch: 3}}",
        "train: {initial_scale: 0.01}",
        "train: {initial_weights: w, partial: yes}",
        "train: {recompute: yes}",
        "train: {loss: mse}",
        "train: {precision: int16}\nparallel: {device: cpu}",
        "train: {class_weights: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}",
        "train: {class_weights: balanced}",
        "train: {groups: [{match: a, weight_decay: 1.5e-30}, {match: b, weight_decay: 0}]}",
        "data: {set: idx, root: d}\ntrain: {class_weights: [1, 2]}",
        "data: {shuffle: no}",
        "data: {shuffle_window: 8}",
        "data: {balance_classes: yes}",
        "data: {mean: [0.5]}",
        "data: {set: cifar10, mean: 0.5}",
        "data: {augment: [{crop: {padding: 1}}]}",
        "data: {set: pictures, root: d, size: 8, fit: pad}",
        "data: {set: pictures, root: d, colour: yes}",
        "data: {set: webdataset, root: d, label: id}",
        "data: {micro_batch: 16}",
        "data: {per_rank_batch: 8}",
        "parallel: {strategy: pipeline}",
        "parallel: {threads: 2}",
        "parallel: {backend: thread, ranks: 2}",
        "parallel: {device: cuda, backend: nccl, ranks: 2}",
        "parallel: {ranks: 2}",
        "parallel: {strategy: hogwild, determinism: off, device: cpu, backend: mpi}",
        "parallel: {determinism: off, replay_every_steps: 0}",
        "parallel: {replay_every_steps: 5}",
        "parallel: {determinism: off, replay_every_steps: auto}",
        "run: {trace: 3..3}",
        "run: {trace: 1..1}",
        "run: {trace: 5..1004}",
        "run: {print_shapes: yes}",
        "inject: {step: 1, what: die}",
        "parallel: {bucket_bytes: 4}",
        "parallel: {bucket_bytes: 1GiB, grain: 4096, threads: 1024, ranks: 4096, backend: thread}",
        "parallel: {strategy: pipeline, stages: 4096}",
        "parallel: {strategy: pipeline, placement: [4095]}",
        "data: {validation: 1000000000}",
        "data: {set: pictures, root: d, size: 4096}",
        "train: {optimizer: {momentum: 0.5, dampening: 1}}",
        "train: {clip_norm: 1e9}",
        "train: {schedule: {kind: one_cycle, div_factor: 1}}",
        "run: {trace: 4294967295..4294967295}",
        "train: {class_weights: [1e-6, 1e6, 0, 0, 0, 0, 0, 0, 0, 0]}"})
    EXPECT_EQ(test::error_of<ConfigError>([&] { parse_job(std::string("model: net\n") + job, "job.yaml"); }),
              "")
        << job;
  std::string flips;
  for (int i = 0; i < 16; ++i) flips += "{flip: {vertical: 1}}, ";
  EXPECT_EQ(parse_job("model: net\ndata: {augment: [" + flips + "]}", "job.yaml").data.augment.size(), 16U);
}

}  // namespace
}  // namespace lockstep::job_error_test
