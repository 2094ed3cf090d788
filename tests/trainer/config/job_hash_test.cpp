// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which changes to a job a resume must refuse.
#include "trainer/config/job_hash.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

std::vector<std::string> changes(const std::string& override_text, const std::string& base = "model: net") {
  const Job before = parse_job(base, "job.yaml");
  const Job after = parse_job(base, "job.yaml", {override_text});
  return differing_keys(determining_keys(after), determining_keys(before));
}

TEST(JobHashTest, EqualJobsDoNotDiffer) {
  EXPECT_TRUE(changes("model=net").empty());
}

TEST(JobHashTest, WhatDeterminesTheWeightsIsNamedWithBothValues) {
  EXPECT_EQ(changes("train.seed=1"), std::vector<std::string>{"train.seed: 1 here, 1234 there"});
  for (const char* text :
       {"model=lenet", "data.set=random", "data.global_batch=64", "data.mean=0", "data.std=1",
        "data.shuffle=no", "train.optimizer.lr=0.5", "train.optimizer.momentum=0",
        "train.optimizer.weight_decay=1e-4", "train.optimizer.nesterov=yes", "parallel.determinism=off",
        "train.initial_weights=w.safetensors", "parallel.grain=32"}) {
    EXPECT_FALSE(changes(text).empty()) << text;
  }
}

TEST(JobHashTest, LengthPlaceAndLoggingMayChange) {
  for (const char* text :
       {"train.epochs=99", "train.max_steps=5", "data.root=/elsewhere", "parallel.device=cpu",
        "parallel.backend=thread", "parallel.ranks=3", "parallel.threads=2", "parallel.bucket_bytes=4KiB",
        "parallel.timeout_seconds=9", "parallel.check_replicas_every_steps=1", "run.dir=x",
        "run.resume=never", "run.log_every_steps=1", "run.checkpoint_every_steps=1"}) {
    EXPECT_TRUE(changes(text).empty()) << text;
  }
}

TEST(JobHashTest, GrainMayChangeWhenSumsAreNotExact) {
  EXPECT_TRUE(changes("parallel.grain=32", "{model: net, parallel: {determinism: off}}").empty());
}

TEST(JobHashTest, KeyThatOnlyOneSideHasIsADifference) {
  EXPECT_EQ(differing_keys({{"a", "1"}}, {{"b", "2"}}),
            (std::vector<std::string>{"a: 1 here, not given there", "b: not given here, 2 there"}));
}

}  // namespace
}  // namespace lockstep
