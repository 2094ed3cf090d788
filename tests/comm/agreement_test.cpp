// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/agreement.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

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
      EXPECT_EQ(error.what(),
                comm.rank() == 1 ? "rank 1 on " + comm.host() + ": no such file" : "rank 1 failed");
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
      EXPECT_EQ(error.speaker(), 0);
      EXPECT_STREQ(error.what(),
                   comm.rank() == 0 ? "internal error: surprise; please report this" : "rank 0 failed");
    }
  });
}

}  // namespace

}  // namespace lockstep

namespace lockstep::testing {

namespace {

TEST(GatherTest, TextsOfAnyLengthArriveInOrderOfRank) {
  const std::vector<std::string> texts{"node1", "", std::string("zero\0inside", 11), std::string(5000, 'x')};
  run_thread_ranks(4, [&](Communicator& comm) {
    EXPECT_EQ(gather_text(comm, texts[static_cast<std::size_t>(comm.rank())]), texts);
  });
}

TEST(GatherTest, AllMayBeEmpty) {
  run_thread_ranks(2, [](Communicator& comm) {
    EXPECT_EQ(gather_text(comm, ""), (std::vector<std::string>{"", ""}));
  });
}

TEST(GatherTest, ValuesArriveInOrderOfRank) {
  struct Point {
    int rank;
    double square;
    bool operator==(const Point&) const = default;
  };
  run_thread_ranks(3, [](Communicator& comm) {
    const auto all = gather(comm, Point{comm.rank(), comm.rank() * comm.rank() * 1.0});
    EXPECT_EQ(all, (std::vector<Point>{{0, 0.0}, {1, 1.0}, {2, 4.0}}));
  });
}

TEST(GatherTest, RowsOfValuesArriveByRank) {
  run_thread_ranks(2, [](Communicator& comm) {
    const std::vector<std::int16_t> mine{static_cast<std::int16_t>(comm.rank()), 7, -1};
    const auto all = gather(comm, std::span<const std::int16_t>(mine));
    EXPECT_EQ(all, (std::vector<std::vector<std::int16_t>>{{0, 7, -1}, {1, 7, -1}}));
  });
}

TEST(GatherTest, EmptyRowsAreRowsAllTheSame) {
  run_thread_ranks(2,
                   [](Communicator& comm) { EXPECT_EQ(gather(comm, std::span<const double>()).size(), 2U); });
}

TEST(GatherTest, RanksOfOneProcessAreOnOneHost) {
  run_thread_ranks(3, [](Communicator& comm) {
    EXPECT_EQ(gather_hosts(comm), std::vector<std::string>(3, comm.host()));
    EXPECT_EQ(count_hosts(comm), 1);
  });
}

/// The last rank is on another host.
class OnTwoHosts final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  const std::string& host() const override { return host_; }

 private:
  std::string host_ = rank() + 1 == size() ? "far" : "near";
};

TEST(GatherTest, MemoryIsSharedOnOneHostAlone) {
  run_thread_ranks(3, [](Communicator& comm) {
    OnTwoHosts hosts(comm);
    EXPECT_EQ(gather_hosts(hosts), (std::vector<std::string>{"near", "near", "far"}));
    EXPECT_EQ(count_hosts(hosts), 2);
    EXPECT_EQ(message_of<ConfigError>([&] { share_memory(hosts, 8); }),
              "the ranks are on 2 hosts, and memory is shared on one: start them all on one host");
  });
}

}  // namespace

}  // namespace lockstep::testing
