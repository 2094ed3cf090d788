// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who is wrong about a share: what most have is right, and a rank that contradicts itself is not.
#include "trainer/engine/replay.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

const SumFingerprints kRight = {1, 2, 3}, kWrong = {1, 5, 3}, kOther = {9, 2, 3};

TEST(ReplayTest, MostRanksAreRight) {
  const std::vector<ShareResult> results = {{2, kWrong}, {1, kRight}, {0, kRight}, {1, kRight}, {2, kWrong}};
  const ReplayVerdict verdict = judge_share(results);
  EXPECT_TRUE(verdict.is_certain);
  EXPECT_EQ(verdict.wrong, std::vector{2});
  EXPECT_EQ(verdict.tensor, 1);
}

TEST(ReplayTest, OfTwoRanksTheOneThatContradictsItselfIsWrong) {
  const std::vector<ShareResult> results = {{0, kWrong}, {1, kRight}, {0, kRight}, {1, kRight}};
  const ReplayVerdict verdict = judge_share(results);
  EXPECT_TRUE(verdict.is_certain);
  EXPECT_EQ(verdict.wrong, std::vector{0});
}

TEST(ReplayTest, OfTwoRanksThatInsistNeitherIsBlamedAlone) {
  const std::vector<ShareResult> results = {{0, kWrong}, {1, kRight}, {0, kWrong}, {1, kRight}};
  const ReplayVerdict verdict = judge_share(results);
  EXPECT_FALSE(verdict.is_certain);
  EXPECT_EQ(verdict.wrong, (std::vector{0, 1}));
  EXPECT_EQ(verdict.tensor, 1);
}

TEST(ReplayTest, TwoRanksMayBeWrongEachInItsWay) {
  const std::vector<ShareResult> results = {{0, kWrong}, {3, kRight}, {0, kWrong}, {1, kRight},
                                            {2, kOther}, {3, kRight}, {4, kRight}};
  EXPECT_EQ(judge_share(results).wrong, (std::vector{0, 2}));
}

/// What four ranks say when one of them computes, remembers or holds something else.
std::string said(const std::function<SumFingerprints(int rank, int share)>& compute,
                 const std::function<SumFingerprints(int rank)>& weights,
                 const std::function<std::uint64_t(int rank)>& samples) {
  ParameterLayout layout;
  for (const char* name : {"a", "b", "c"}) layout.parameters.emplace_back().name = name;
  const std::string device = "cpu";
  std::vector<std::string> texts(4);
  run_thread_ranks(4, [&](Communicator& comm) {
    const int rank = comm.rank();
    const ReplayWork work{.compute_share = [&](int share) { return compute(rank, share); },
                          .weights = [&] { return weights(rank); },
                          .samples = [&](int /*share*/) { return samples(rank); }};
    try {
      replay_next_rank(comm, compute(rank, rank), work, 7, {layout, device});
    } catch (const AgreedError& error) {
      texts[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& text : texts) EXPECT_EQ(text, texts.front()) << "ranks disagree";
  return texts.front();
}

SumFingerprints share_of(int share) {
  return {static_cast<std::uint64_t>(share), 2, 3};
}

TEST(ReplayTest, AnHonestStepIsSilent) {
  EXPECT_EQ(
      said([](int, int share) { return share_of(share); }, [](int) { return kRight; }, [](int) { return 0; }),
      "");
}

TEST(ReplayTest, WhatIsAtFaultIsSaid) {
  for (int odd = 0; odd < 4; ++odd) {
    const auto wrong_on_one = [odd](int rank, int share) {
      SumFingerprints sums = share_of(share);
      if (rank == odd) sums[2] += 1;
      return sums;
    };
    const auto odd_weights = [odd](int rank) { return rank == odd ? kWrong : kRight; };
    const auto right_weights = [](int) { return kRight; };
    const auto odd_samples = [odd](int rank) { return std::uint64_t{rank == odd ? 1U : 0U}; };
    const auto right_samples = [](int) { return std::uint64_t{0}; };
    const std::string who = "rank " + std::to_string(odd) + " on ";
    const std::string processor = said(wrong_on_one, right_weights, right_samples),
                      data = said(wrong_on_one, right_weights, odd_samples),
                      memory = said(wrong_on_one, odd_weights, right_samples);
    for (const std::string& text : {processor, data, memory})
      EXPECT_EQ(text.find("step 7: " + who), 0) << text;
    EXPECT_NE(processor.find("its processor computed wrongly"), std::string::npos) << processor;
    EXPECT_NE(processor.find("other gradients of c"), std::string::npos) << processor;
    EXPECT_NE(data.find("its training samples are not those of the others"), std::string::npos) << data;
    EXPECT_NE(memory.find("its weights are not those of the others from b on"), std::string::npos) << memory;
  }
}

}  // namespace
}  // namespace lockstep
