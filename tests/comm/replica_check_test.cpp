// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank whose weights differ is found and named, on every rank.
#include "comm/replica_check.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"

#include <gtest/gtest.h>

#include <map>

namespace lockstep {
namespace {

const std::vector<std::string> kNames{"conv1.weight", "conv1.bias", "fc.weight"};

/// The verdict of every rank when `wrong` maps ranks to the tensors in which they differ.
std::vector<std::string> verdicts(int ranks, const std::map<int, std::vector<std::size_t>>& wrong) {
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](Communicator& comm) {
    std::vector<Digest> digests(kNames.size());
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i].fill(static_cast<std::byte>(i));
    const auto mine = wrong.find(comm.rank());
    if (mine != wrong.end()) {
      for (const std::size_t tensor : mine->second) digests[tensor].back() = std::byte{255};
    }
    try {
      check_replicas(comm, digests, kNames, 1500);
    } catch (const InternalError& error) {
      messages[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  for (const std::string& message : messages) EXPECT_EQ(message, messages[0]);
  return messages;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReplicaCheckTest, EqualReplicasPass) {
  EXPECT_EQ(verdicts(1, {})[0], "");
  EXPECT_EQ(verdicts(4, {})[0], "");
}

TEST(ReplicaCheckTest, RankStepAndFirstTensorAreNamed) {
  const std::string message = verdicts(4, {{2, {1, 2}}})[0];
  EXPECT_TRUE(contains(message, "at step 1500")) << message;
  EXPECT_TRUE(contains(message, "rank 2 on ")) << message;
  EXPECT_TRUE(contains(message, "'conv1.bias'")) << message;
  EXPECT_FALSE(contains(message, "fc.weight")) << message;
  EXPECT_FALSE(contains(message, "rank 0")) << message;
}

TEST(ReplicaCheckTest, SeveralRanksAreAllNamed) {
  const std::string message = verdicts(5, {{1, {2}}, {4, {0}}})[0];
  EXPECT_TRUE(contains(message, "rank 1 on ") && contains(message, "'fc.weight'")) << message;
  EXPECT_TRUE(contains(message, "rank 4 on ") && contains(message, "'conv1.weight'")) << message;
}

TEST(ReplicaCheckTest, MajorityIsRightEvenAgainstRankZero) {
  const std::string message = verdicts(3, {{0, {0}}})[0];
  EXPECT_TRUE(contains(message, "rank 0 on ")) << message;
  EXPECT_FALSE(contains(message, "rank 1")) << message;
}

TEST(ReplicaCheckTest, RankZeroIsRightWhenThereIsNoMajority) {
  const std::string message = verdicts(2, {{1, {0}}})[0];
  EXPECT_TRUE(contains(message, "rank 1 on ")) << message;
  EXPECT_FALSE(contains(message, "rank 0")) << message;
}

}  // namespace
}  // namespace lockstep
