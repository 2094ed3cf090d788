// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/agreement.hpp"

#include "comm/thread/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace lockstep {
namespace {

TEST(AgreementTest, WhenAllSucceedNobodyThrows) {
  EXPECT_NO_THROW(run_thread_ranks(3, [](Communicator& comm) { agree(comm, [] {}); }));
}

TEST(AgreementTest, OneFailureStopsEveryRankWithTheSameCodeAndSpeaker) {
  std::atomic<int> stopped = 0;
  run_thread_ranks(3, [&](Communicator& comm) {
    try {
      agree(comm, [&] {
        if (comm.rank() == 1) throw MissingDataError("no such file");
        if (comm.rank() == 2) throw IoError("later rank, other error");
      });
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::kDataMissing);
      EXPECT_EQ(error.speaker(), 1);
      if (comm.rank() == 1) {
        EXPECT_EQ(error.what(), "rank 1 on " + comm.host() + ": no such file");
      }
      ++stopped;
    }
  });
  EXPECT_EQ(stopped, 3);
}

TEST(AgreementTest, AnUnexpectedExceptionCountsAsInternalError) {
  run_thread_ranks(2, [](Communicator& comm) {
    try {
      agree(comm, [&] {
        if (comm.rank() == 0) throw std::runtime_error("surprise");
      });
      ADD_FAILURE() << "did not throw";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::kInternal);
    }
  });
}

}  // namespace
}  // namespace lockstep
