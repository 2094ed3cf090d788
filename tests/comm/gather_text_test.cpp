// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/gather_text.hpp"

#include "comm/thread/thread_ranks.hpp"

#include <gtest/gtest.h>

namespace lockstep::testing {
namespace {

TEST(GatherTextTest, TextsOfAnyLengthArriveInOrderOfRank) {
  const std::vector<std::string> texts{"node1", "", std::string("zero\0inside", 11), std::string(5000, 'x')};
  run_thread_ranks(4, [&](Communicator& comm) {
    EXPECT_EQ(gather_text(comm, texts[static_cast<std::size_t>(comm.rank())]), texts);
  });
}

TEST(GatherTextTest, AllMayBeEmpty) {
  run_thread_ranks(2, [](Communicator& comm) {
    EXPECT_EQ(gather_text(comm, ""), (std::vector<std::string>{"", ""}));
  });
}

}  // namespace
}  // namespace lockstep::testing
