// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The thread backend: the common checks, errors and deadlines.
#include "comm/thread/thread_ranks.hpp"

#include "comm/collectives.hpp"
#include "comm/thread/thread_group.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"

#include <sched.h>

#include <latch>

namespace lockstep::testing {
namespace {

using std::chrono::milliseconds;

class ThreadConformanceTest : public ::testing::TestWithParam<std::tuple<ConformanceCase, int>> {};

TEST_P(ThreadConformanceTest, Holds) {
  const auto& [conformance, ranks] = GetParam();
  run_thread_ranks(ranks, conformance.check);
}

const auto kName = [](const auto& param) {
  return std::get<0>(param.param).name + std::to_string(std::get<1>(param.param));
};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(conformance_cases()),
                                            ::testing::Values(1, 2, 3, 5, 8)),
                         kName);
INSTANTIATE_TEST_SUITE_P(ThreadCollectives, ThreadConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(collective_cases()), ::testing::Range(1, 9)),
                         kName);

TEST(ThreadRanksTest, ThereIsOneRankAtLeast) {
  EXPECT_THROW(run_thread_ranks(0, [](Communicator&) { ADD_FAILURE(); }), InternalError);
}

TEST(ThreadRanksTest, BackendAndCoresAreKnown) {
  EXPECT_EQ(make_lone_rank()->backend(), "none");
  EXPECT_FALSE(make_lone_rank()->oversubscribed());
  EXPECT_EQ(make_lone_rank()->local_cores(), available_cores());
  EXPECT_TRUE(make_lone_rank()->timeout() == std::chrono::minutes(5));
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof(one), &one);  // new threads inherit it
  run_thread_ranks(2, [](Communicator& comm) {
    EXPECT_EQ(comm.backend(), "thread");
    EXPECT_TRUE(comm.timeout() == std::chrono::minutes(5));
    EXPECT_TRUE(comm.oversubscribed());
    EXPECT_TRUE(comm.split(comm.rank())->oversubscribed()) << "the other rank has the core, too";
  });
  EXPECT_FALSE(make_lone_rank()->oversubscribed());
  ::sched_setaffinity(0, sizeof(before), &before);
}

TEST(ThreadRanksTest, WhereTheSystemGivesNoMoreThreadsThoseThatRunAreReleasedAndTheReasonIsSaid) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs the memory that this takes away";
#else
  const NoMoreThreads few(NoMoreThreads::Spare::kTwoOrThree);
  expect_error<DeviceError>(
      [] { run_thread_ranks(64, [](Communicator& comm) { comm.barrier(); }); },
      {"a thread cannot be started: this process has ", "ulimit -v allows this process"});
#endif
}

TEST(ThreadRanksTest, FloatSumsAreInRankOrder) {
  run_thread_ranks(3, [](Communicator& comm) {
    const float terms[] = {1e8F, -1e8F, 0.25F};  // any other order loses the quarter
    float value = terms[comm.rank()];
    comm.all_reduce(std::span(&value, 1));
    EXPECT_EQ(value, 0.25F);
  });
}

TEST(ThreadRanksTest, MissingRankIsAPeerLostAndTheReasonIsSaid) {
  const auto text = message_of<PeerLostError>([] {
    run_thread_ranks(
        2,
        [](Communicator& comm) {
          comm.rank() == 0 ? comm.barrier() : std::this_thread::sleep_for(milliseconds(1));
        },
        milliseconds(50));
  });
  EXPECT_TRUE(contains(text, {"rank 0 of 2 on ", "waited 0.05 s for the other ranks in a barrier"}));
}

TEST(ThreadRanksTest, AnotherCollectiveSaysWhoStartedWhich) {
  std::int64_t number = 1, numbers[2] = {};
  float half = 0.5F;
  const auto three = std::as_writable_bytes(std::span(numbers)).first(3);
  const std::pair<const char*, std::function<void(Communicator&)>> others[] = {
      {"a broadcast of 3 bytes (root 1)", [&](Communicator& comm) { comm.broadcast(three, 1); }},
      {"an all-gather of 3 bytes (root 0)", [&](Communicator& comm) { comm.all_gather(three); }},
      {"a barrier of 0 bytes (root 0)", [](Communicator& comm) { comm.barrier(); }},
      {"an fp32 all-reduce of 4 bytes (root 0)",
       [&](Communicator& comm) { comm.all_reduce(std::span(&half, 1)); }},
      {"an int64 all-reduce of 16 bytes (root 0)",
       [&](Communicator& comm) { comm.all_reduce(std::span(&numbers[0], 2)); }}};
  for (const auto& other : others) {
    std::latch has_started(1);
    const auto body = [&](Communicator& comm) {
      if (comm.rank() == 1) {
        has_started.wait();
        other.second(comm);
      }
      const auto pending = comm.host_all_reduce().start(std::span(&number, 1));
      has_started.count_down();
    };
    EXPECT_EQ(
        message_of<InternalError>([&] { run_thread_ranks(2, body); }),
        fmt::format(
            "rank 1 starts {} where another rank started an int64 all-reduce of 8 bytes (root 0): ranks "
            "must call the same collectives in the same order; please report this",
            other.first));
  }
}

TEST(ThreadRanksTest, PiecesThatAreNotTheWholeAreABug) {
  run_thread_ranks(1, [](Communicator& comm) {
    const std::vector<float> whole(3);
    for (const auto& counts : std::vector<std::vector<std::size_t>>{{2}, {3, 0}})
      EXPECT_THROW(scatter(comm, whole, counts, 0), InternalError);
    EXPECT_THROW(gather_to(comm, whole, std::vector<std::size_t>{3, 0}, 0), InternalError);
  });
}

TEST(ThreadRanksTest, ABroadcastFromARankThatIsNoneIsABug) {
  std::array<std::byte, 4> bytes{};
  for (const int root : {-1, 1}) EXPECT_THROW(make_lone_rank()->broadcast(bytes, root), InternalError);
}

TEST(ThreadRanksTest, LengthsAtBothEndsOfAMessageAreTold) {
  run_thread_ranks(1, [](Communicator& comm) {
    const std::vector<std::byte> sent(5);
    std::vector<std::byte> received(2);
    const auto sending = comm.point_to_point().start_send(sent, 0, 1);
    const std::string begin = "a message from rank 0 to rank 0 (tag 1) has ", end = "; please report this";
    EXPECT_EQ(message_of<InternalError>([&] { comm.receive(received, 0, 1); }),
              begin + "2 bytes at one end and 5 at the other" + end);
    EXPECT_EQ(message_of<InternalError>([&] { sending->test(); }),
              begin + "5 bytes at one end and 2 at the other" + end);
  });
}

TEST(ThreadGroupTest, TheFirstReasonStaysAndAPartFailsWithTheWhole) {
  ThreadGroup whole(2), part(1, &whole), other(1, &whole);
  part.fail("of the part");
  EXPECT_TRUE(part.failed());
  EXPECT_FALSE(whole.failed());
  EXPECT_FALSE(other.failed());
  whole.fail("first");
  whole.fail("second");
  EXPECT_TRUE(other.failed());
  EXPECT_EQ(whole.reason(), "first");
  EXPECT_EQ(other.reason(), "first");
  EXPECT_EQ(part.reason(), "of the part");
}

TEST(ThreadRanksTest, AMessageThatIsNeverSentOrReceivedNamesTheOtherEnd) {
  for (const bool sends : {false, true}) {
    const auto text = message_of<PeerLostError>([sends] {
      run_thread_ranks(
          3,
          [sends](Communicator& comm) {
            std::byte byte{};
            if (comm.rank() == 2) sends ? comm.send({&byte, 1}, 1, 4) : comm.receive({&byte, 1}, 1, 4);
          },
          milliseconds(50));
    });
    EXPECT_TRUE(contains(text, {"waited 0.05 s for the other ranks in a message ",
                                sends ? " to rank 1: " : " from rank 1: "}));
  }
}

TEST(ThreadRanksTest, ErrorOfOneRankReleasesTheOthersAndIsRethrown) {
  std::vector<std::string> released(2);
  const auto fail_rank_2 = [&](const std::function<void()>& fail) {
    const auto body = [&](Communicator& comm) {
      if (comm.rank() == 2) fail();
      try {
        comm.barrier();
      } catch (const PeerLostError& error) {
        at(released, comm.rank()) = error.what();
        throw;
      }
    };
    run_thread_ranks(3, body, std::chrono::hours(1));
  };
  const auto expect_released = [&](const std::string& reason) {
    for (const int rank : {0, 1})
      EXPECT_EQ(at(released, rank),
                fmt::format("rank {} of 3 on {} stops because rank 2 failed: {}", rank, host_name(), reason));
  };
  EXPECT_EQ(message_of<IoError>([&] { fail_rank_2([] { throw IoError("disk full"); }); }), "disk full");
  expect_released("disk full");
  EXPECT_THROW(fail_rank_2([] { throw 7; }), int) << "no exception of the library";
  expect_released("an unknown error");
}

TEST(ThreadRanksTest, ARankThatWaitsInAPartIsReleasedWithTheWhole) {
  const auto body = [](Communicator& comm) {
    const auto part = comm.split(comm.rank() / 2);
    if (comm.rank() == 2) throw IoError("disk full");
    std::byte never{};
    part->receive({&never, 1}, 0);
  };
  EXPECT_EQ(message_of<IoError>([&] { run_thread_ranks(3, body); }), "disk full");
}

TEST(ThreadRanksTest, LowestRankSpeaksWhenSeveralFail) {
  const std::string message = message_of<std::runtime_error>([] {
    run_thread_ranks(4, [](Communicator& comm) {
      if (comm.rank() % 2 == 1) throw std::runtime_error("rank " + std::to_string(comm.rank()));
      comm.barrier();
    });
  });
  EXPECT_EQ(message, "rank 1");
}

TEST(ThreadRanksTest, AbortReleasesTheOthersAlsoOutsideOfAPart) {
  for (const bool in_part : {false, true}) {
    const auto text = message_of<PeerLostError>([in_part] {
      run_thread_ranks(
          4,
          [in_part](Communicator& comm) {
            const auto part = comm.split(comm.rank() / 2);
            if (comm.rank() == 3) return (in_part ? *part : comm).abort(70);
            comm.barrier();
          },
          std::chrono::seconds(20));
    });
    EXPECT_TRUE(contains(text, {"rank 3 aborted the job with exit code 70"}));
  }
}

/// A lone rank meets no other that could end its wait.
TEST(ThreadRanksTest, NothingBeginsAfterAnAbort) {
  const auto comm = make_lone_rank();
  comm->abort(70);
  std::byte byte{};
  EXPECT_THROW(comm->barrier(), PeerLostError);
  EXPECT_THROW(comm->point_to_point().start_send({&byte, 1}, 0, 0), PeerLostError);
}

TEST(ThreadRanksTest, ABufferThatWasAbandonedIsNeverWrittenAndItsPartnersWaitOn) {
  std::array<std::int64_t, 2> abandoned{1, 1}, other{2, 2};
  std::latch is_abandoned(1);
  run_thread_ranks(2, [&](Communicator& comm) {
    auto& mine = comm.rank() == 0 ? abandoned : other;
    if (comm.rank() == 1) is_abandoned.wait();
    const auto sum = [&] { return comm.host_all_reduce().start(std::span(&mine[0], 1)); };
    const auto bytes = std::as_writable_bytes(std::span(&mine[1], 1));
    if (comm.rank() == 0) {
      sum().reset();
      comm.point_to_point().start_receive(bytes, 1, 0).reset();
      is_abandoned.count_down();
    } else {
      EXPECT_FALSE(sum()->test());
      EXPECT_FALSE(comm.point_to_point().start_send(bytes, 0, 0)->test());
    }
  });
  EXPECT_EQ(abandoned, (std::array<std::int64_t, 2>{1, 1}));
  EXPECT_EQ(other, (std::array<std::int64_t, 2>{2, 2}));
}

}  // namespace
}  // namespace lockstep::testing
