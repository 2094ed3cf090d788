// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/agreement.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

/// Messages of the errors that three ranks agree on. All have this code and speaker.
std::vector<std::string> errors_of(const std::function<void(int rank)>& action, ExitCode code, int speaker) {
  std::vector<std::string> texts(3);
  run_thread_ranks(3, [&](Communicator& comm) {
    try {
      agree(comm, [&] { action(comm.rank()); });
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_EQ(error.speaker(), speaker);
      at(texts, comm.rank()) = error.what();
    }
  });
  return texts;
}

TEST(AgreementTest, OneFailureStopsEveryRankWithTheSameCodeAndSpeaker) {
  const auto fail = [](int rank) {
    if (rank == 1) throw MissingDataError("no such file");
    if (rank == 2) throw IoError("later rank, other error");
  };
  EXPECT_EQ(errors_of(fail, ExitCode::kDataMissing, 1),
            (std::vector<std::string>{"rank 1 failed", "rank 1 on " + host_name() + ": no such file",
                                      "rank 1 failed"}));
}

TEST(AgreementTest, AnUnexpectedExceptionCountsAsInternalError) {
  const auto fail = [](int rank) {
    if (rank == 0) throw std::runtime_error("surprise");
  };
  EXPECT_EQ(errors_of(fail, ExitCode::kInternal, 0),
            (std::vector<std::string>{"internal error: surprise; please report this", "rank 0 failed",
                                      "rank 0 failed"}));
}

TEST(AgreementTest, Rank0SpeaksUnlessAnotherIsNamed) {
  EXPECT_EQ(AgreedError(ExitCode::kUsage, "").speaker(), 0);
  EXPECT_EQ(AgreedError(ExitCode::kUsage, "", 2).speaker(), 2);
}

TEST(GatherTest, TextsOfAnyLengthArriveInOrderOfRank) {
  for (const auto& texts :
       {std::vector<std::string>{"node1", "", std::string("zero\0inside", 11), std::string(5000, 'x')},
        {"", ""}})
    run_thread_ranks(static_cast<int>(texts.size()), [&](Communicator& comm) {
      EXPECT_EQ(gather_text(comm, at(texts, comm.rank())), texts);
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
