// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the verdict to the end: the rank that speaks, the news for others, the end of the process. Ranks are heard for
/// ever, or not at all.
#include "comm/watch/shutdown.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

namespace lockstep::watchdog {
namespace {

class ShutdownHeartbeatTest : public HeartbeatRanks {
 protected:
  static constexpr std::int64_t kMs = 1'000'000;
  /// Steps after the verdict, which was found between these two times.
  using Steps = std::function<void(Shutdown&, std::int64_t earliest, std::int64_t latest)>;

  ShutdownHeartbeatTest() : HeartbeatRanks(3) {
    until("they meet", [this] {
      return std::ranges::all_of(std::array{peer(0, 1), peer(0, 2), peer(1, 0)}, &Peer::watched);
    });
    set_heard(clock_ns() + 3'600'000 * kMs);
  }
  static bool is_settled(Shutdown& shutdown) { return shutdown.wait_until_settled(std::chrono::seconds(0)); }
  void set_heard(std::int64_t when) {
    for (Rank& rank : ranks)
      for (Peer& each : rank.peers) each.heard_ns = when;
  }

  void begin(int rank, Cause cause, const Steps& steps) {
    run_thread_ranks(3, [&](Communicator& comm) {
      if (comm.rank() != rank) return;
      comm.activity().verdict_file.set(file);
      const FailureDetector detector(rank, Limits::for_timeout(30));
      Shutdown shutdown(comm, detector, *of(rank).heartbeat, of(rank).peers);
      const std::int64_t earliest = clock_ns();
      shutdown.begin({.cause = cause, .initiating = {2}});
      const std::int64_t latest = clock_ns();
      EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), SIG_IGN) << "the launcher may tell it to stop";
      EXPECT_TRUE(shutdown.is_over());
      steps(shutdown, earliest, latest);
    });
  }
  /// How often the verdict is said.
  int words(int rank, Cause cause, const Steps& steps) {
    ::testing::internal::CaptureStderr();
    begin(rank, cause, steps);
    return test::count_of("lockstep: verdict: rank 2 on here", ::testing::internal::GetCapturedStderr());
  }
  std::tuple<int, int, bool> farewell(int from, int to) {
    const Leaving& said = peer(to, from).farewell;
    return {said.code, said.because, said.spoken};
  }

  const testing::TemporaryDirectory directory;
  std::string file;
};

TEST_F(ShutdownHeartbeatTest, TheLowestRankThatIsThereSpeaksAtOnce) {
  const auto settled = [](Shutdown& shutdown, auto...) { EXPECT_TRUE(is_settled(shutdown)); };
  EXPECT_EQ(words(0, Cause::kDied, settled), 1);
  set_heard(0);
  EXPECT_EQ(words(0, Cause::kSilent, settled), 1) << "rank 0 is with the launcher";
  EXPECT_EQ(words(1, Cause::kDied, settled), 1) << "no other is there";
  until("rank 0 has spoken for all", [this] { return peer(1, 0).farewell.spoken; });
  EXPECT_EQ(farewell(0, 1), std::tuple(71, 2, true));
}

TEST_F(ShutdownHeartbeatTest, AnotherRankWaitsForItAndThenSpeaksItself) {
  peer(1, 2).leaving = true;  // and has not spoken
  const auto steps = [](Shutdown& shutdown, std::int64_t earliest, std::int64_t latest) {
    shutdown.go_on(earliest + 1500 * kMs - 1, 0);
    EXPECT_FALSE(is_settled(shutdown));
    for (int i = 0; i < 2; ++i) shutdown.go_on(latest + 1500 * kMs, 0);
    EXPECT_TRUE(is_settled(shutdown));
  };
  EXPECT_EQ(words(1, Cause::kDied, steps), 1);
}

TEST_F(ShutdownHeartbeatTest, AnotherRankFollowsOneThatSpeaks) {
  const auto steps = [this](Shutdown& shutdown, std::int64_t, std::int64_t latest) {
    EXPECT_FALSE(is_settled(shutdown));
    peer(1, 0).farewell.spoken = true;
    shutdown.go_on(latest, 0);
    EXPECT_FALSE(is_settled(shutdown)) << "no rank leaves";
    peer(1, 0).leaving = true;
    shutdown.go_on(latest, 0);
    EXPECT_TRUE(is_settled(shutdown));
  };
  EXPECT_EQ(words(1, Cause::kDied, steps), 0);
  until("rank 0 knows", [this] { return peer(0, 1).leaving; });
  EXPECT_EQ(farewell(1, 0), std::tuple(71, 2, false));
}

TEST_F(ShutdownHeartbeatTest, ARankThatHearsNobodyWaitsForASecond) {
  set_heard(0);
  const auto steps = [](Shutdown& shutdown, std::int64_t earliest, std::int64_t latest) {
    shutdown.go_on(earliest + 1000 * kMs - 1, 0);
    EXPECT_FALSE(is_settled(shutdown));
    shutdown.go_on(latest + 1000 * kMs, 0);
    EXPECT_TRUE(is_settled(shutdown));
  };
  EXPECT_EQ(words(1, Cause::kSilent, steps), 1);
}

TEST_F(ShutdownHeartbeatTest, OfAVerdictInTheFileOnlySilenceIsSaidAgain) {
  file = directory.path("verdict");
  std::ofstream(file) << "verdict: ...\n";
  const auto nothing = [](auto&&...) {};
  EXPECT_EQ(words(0, Cause::kDied, nothing), 0);
  EXPECT_EQ(words(0, Cause::kStuck, nothing), 0);
  EXPECT_EQ(words(0, Cause::kSilent, nothing), 1);
  ::testing::internal::CaptureStderr();
  begin(0, Cause::kNetwork, nothing);
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), {"all 3 ranks wait"}));
  file = directory.path("none/verdict");
  EXPECT_EQ(words(0, Cause::kDied, nothing), 1) << "no rank can write there";
}

TEST_F(ShutdownHeartbeatTest, ARankThatFollowsHasTimeToLeave) {
  const auto lone = make_lone_rank();
  const FailureDetector detector(0, Limits::for_timeout(30));
  Shutdown shutdown(*lone, detector, *of(0).heartbeat, of(0).peers);
  EXPECT_FALSE(shutdown.is_over() || is_settled(shutdown));
  shutdown.follow();
  EXPECT_TRUE(shutdown.is_over() && is_settled(shutdown));
  shutdown.go_on(clock_ns(), 0);  // does not end the tests
}

class ShutdownHeartbeatDeathTest : public ShutdownHeartbeatTest {
 protected:
  void expect_ended(int rank, const Steps& before, const Steps& at_end) {
    const Steps steps = [&](Shutdown& shutdown, std::int64_t earliest, std::int64_t latest) {
      before(shutdown, earliest, latest);
      std::fputs("it lives\n", stderr);
      at_end(shutdown, earliest, latest);
    };
    EXPECT_EXIT((begin(rank, Cause::kDied, steps), std::_Exit(0)), ::testing::ExitedWithCode(71),
                "it lives\n$");
  }
};

TEST_F(ShutdownHeartbeatDeathTest, AfterTheVerdictARankThatIsReadyHasThreeTenthsOfASecond) {
  expect_ended(
      0,
      [](Shutdown& shutdown, std::int64_t, std::int64_t latest) {
        shutdown.go_on(latest + 2000 * kMs, 0);  // not ready
        shutdown.go_on(latest + 1300 * kMs, latest + 1000 * kMs);
      },
      [](Shutdown& shutdown, std::int64_t, std::int64_t latest) {
        shutdown.go_on(latest + 1300 * kMs + 1, latest + 1000 * kMs);
      });
  std::int64_t soonest = 0, last = 0;
  expect_ended(
      1,
      [&](Shutdown& shutdown, std::int64_t earliest, std::int64_t) {
        shutdown.go_on(earliest + 1000 * kMs, 1);  // ready long ago, and nothing is said yet
        soonest = clock_ns();
        shutdown.settle();
        last = clock_ns();
        shutdown.go_on(soonest + 300 * kMs, 1);
      },
      [&](Shutdown& shutdown, std::int64_t, std::int64_t) { shutdown.go_on(last + 300 * kMs + 1, 1); });
}

TEST_F(ShutdownHeartbeatDeathTest, ARankThatIsNotReadyHasFiveSeconds) {
  expect_ended(
      0,
      [](Shutdown& shutdown, std::int64_t earliest, std::int64_t) {
        shutdown.go_on(earliest + 5000 * kMs, 0);
      },
      [](Shutdown& shutdown, std::int64_t, std::int64_t latest) {
        shutdown.go_on(latest + 5000 * kMs + 1, 0);
      });
}

}  // namespace
}  // namespace lockstep::watchdog
