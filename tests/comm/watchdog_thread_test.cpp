// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watchdogs from the roll call to the verdict.
#include "comm/watch/watchdog_thread.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/rendezvous.hpp"
#include "common/machine.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <future>

namespace lockstep::watchdog {
namespace {

TEST(WatchdogThreadTest, WatchesWhereThereIsAnotherRank) {
  for (const int ranks : {1, 2})
    run_thread_ranks(ranks, [&](Communicator& comm) {
      auto watchdog = Watchdog::start(comm);
      EXPECT_EQ(watchdog != nullptr, ranks == 2);
      EXPECT_EQ(comm.watch(), watchdog.get());
      EXPECT_TRUE(!watchdog || !watchdog->has_patience() || is_traced());
      watchdog.reset();
      EXPECT_EQ(comm.watch(), nullptr);
    });
}

/// As after a stop, or when the machine slept.
TEST(WatchdogThreadTest, ALookThatComesASecondLateFindsAllPeersAsIfHeardJustNow) {
  constexpr std::int64_t kLook = 5'000'000'000, kInterval = 500'000'000, kAway = 1'000'000'000;
  for (const std::int64_t late : {kAway - 1, kAway}) {
    const std::int64_t now = kLook + kInterval + late;
    Peers peers(2);
    peers[0].heard_ns = peers[0].where.since_ns = kLook;
    peers[1].where.since_ns = now - 1;
    forgive_absence(kLook, now, kInterval, peers);
    EXPECT_EQ(peers[0].heard_ns, late == kAway ? now : kLook);
    EXPECT_EQ(peers[1].heard_ns, late == kAway ? now : 0);
    EXPECT_EQ(peers[0].where.since_ns, late == kAway ? now - kInterval : kLook);
    EXPECT_EQ(peers[1].where.since_ns, now - 1) << "it has moved since";
  }
}

TEST(WatchdogThreadTest, GetsNoSignals) {
  constexpr unsigned long kSome = 1UL << (SIGTERM - 1) | 1UL << (SIGINT - 1) | 1UL << (SIGUSR1 - 1);
  const auto blocked = [&](const std::filesystem::path& thread) {
    return std::stoul(value_after(thread / "status", "SigBlk:"), nullptr, 16) & kSome;
  };
  const std::filesystem::path this_thread = "/proc/thread-self";
  run_thread_ranks(2, [&](Communicator& comm) {
    EXPECT_EQ(blocked(this_thread), 0U) << "a watchdog before this one has left them blocked";
    const auto watchdog = Watchdog::start(comm);
    EXPECT_EQ(blocked(this_thread), 0U);
    comm.barrier();
    int named = 0;  // each by itself, when it begins
    for (int tries = 0; named < 2 && tries < 60'000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      named = 0;
      for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        if (value_after(thread.path() / "comm", "") != "watchdog") continue;
        EXPECT_EQ(blocked(thread.path()), kSome);
        ++named;
      }
    }
    EXPECT_EQ(named, 2);
    comm.barrier();
  });
}

/// As when the machine slept: a rank that was away has heard nothing, and the others are not to blame.
TEST(WatchdogThreadTest, RanksThatWereAllAwayLoseNoneOfThem) {
  constexpr std::chrono::milliseconds kTimeout{2500}, kConnected{400}, kAway{3200};
  const auto begun = std::chrono::steady_clock::now();
  std::array<bool, 2> left{};
  const auto away = [&](Communicator& comm) {
    auto roll = call_roll(comm);
    ASSERT_TRUE(roll);
    asio::io_context& context = *roll->context;
    WatchdogThread lookout(comm, std::move(*roll));
    std::this_thread::sleep_until(begun + kConnected);
    asio::post(context, [&] { std::this_thread::sleep_until(begun + kConnected + kAway); });
    std::this_thread::sleep_until(begun + kConnected + kAway + kConnected);
    left[static_cast<std::size_t>(comm.rank())] = lookout.is_over();
  };
  run_thread_ranks(2, away, kTimeout);
  EXPECT_EQ(left, (std::array<bool, 2>{}));
}

/// Rank 1 is a heartbeat alone. The thread of rank 0 is held until rank 1 has said that all leave: rank 0 leaves first,
/// and reads that while its own last message is under way.
TEST(WatchdogThreadTest, ARankThatHasLeftFollowsNoOther) {
  constexpr std::chrono::milliseconds kMillisecond{1};
  std::promise<void> connected, held, told, gone;
  bool followed = true, settled = false;
  std::chrono::steady_clock::duration waited{};
  run_thread_ranks(2, [&](Communicator& comm) {
    auto roll = call_roll(comm);
    ASSERT_TRUE(roll);
    asio::io_context& context = *roll->context;
    if (comm.rank() == 0) {
      comm.activity().device.set("a device");
      WatchdogThread watchdog(comm, std::move(*roll));
      connected.get_future().wait();
      while (!watchdog.has_patience()) std::this_thread::sleep_for(kMillisecond);  // a debugger has rank 1
      // All that rank 1 has sent so far is read before the next handler.
      for (int turn = 0; turn < 2; ++turn) asio::post(context, asio::use_future).get();
      asio::post(context, [&] {
        held.set_value();
        told.get_future().wait();
        const auto begun = std::chrono::steady_clock::now();
        watchdog.leave_alone(3);  // in vain for a second: it is this thread that leaves
        waited = std::chrono::steady_clock::now() - begun;
      });
      while (!context.stopped()) std::this_thread::sleep_for(kMillisecond);
      followed = watchdog.is_over();
      settled = watchdog.accounts_for_loss();
      gone.set_value();
    } else {
      Heartbeat heartbeat(context, std::move(roll->acceptor), 1, roll->token, roll->peers,
                          {.make_beat = [] { return Beat{.where = {}, .traced = true}; }, .changed = [] {}});
      heartbeat.start();
      const Peer& rank_0 = roll->peers[0];
      while (rank_0.device.empty() || !heartbeat.all_sent()) context.run_for(kMillisecond);
      EXPECT_EQ(rank_0.device, "a device");
      EXPECT_TRUE(!rank_0.traced || is_traced());
      connected.set_value();
      held.get_future().wait();
      heartbeat.send_to_all(Leaving{71, 1, true});
      while (!heartbeat.all_sent()) context.run_for(kMillisecond);
      told.set_value();
      gone.get_future().wait();
      while (!rank_0.leaving) context.run_for(kMillisecond);
      EXPECT_EQ(std::tuple(rank_0.farewell.code, rank_0.farewell.because, rank_0.farewell.spoken),
                std::tuple(3, -1, true));
    }
  });
  EXPECT_FALSE(followed);
  EXPECT_TRUE(settled) << "nothing more is to be said";
  EXPECT_GE(waited, std::chrono::seconds(1)) << "for its last message to leave";
}

/// Rank 0 of two cannot go on, though rank 1 lives: it says so, and does not leave by itself. Rank 1 does, at once.
[[noreturn]] void blame_rank_1(const std::string& verdict_file) {
  run_thread_ranks(2, [&](Communicator& comm) {
    comm.activity().verdict_file.set(verdict_file);
    comm.activity().restart_advice.set("go home");
    auto roll = call_roll(comm);
    WatchdogThread watchdog(comm, std::move(*roll));
    if (comm.rank() == 0) {
      const std::int64_t begun = clock_ns();
      const bool said = watchdog.accounts_for_loss();
      if (clock_ns() - begun < 500'000'000) std::fputs("it has not looked around\n", stderr);
      std::fputs(said ? "it is said\n" : "nothing is said\n", stderr);
    }
    while (comm.rank() == 0 || !watchdog.is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::fputs("rank 1 leaves\n", stderr);
  });
  std::_Exit(0);
}

TEST(WatchdogThreadDeathTest, ARankThatCannotGoOnSaysWhyAndIsEndedWhereItDoesNotLeave) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path("verdict");
  EXPECT_EXIT(blame_rank_1(path), ::testing::ExitedWithCode(71),
              "^lockstep: verdict: .*; go home\n(it is said\nrank 1 leaves|rank 1 leaves\nit is said)\n$");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text.starts_with("verdict: ")) << text;
  EXPECT_TRUE(text.ends_with("; go home\n")) << text;
}

}  // namespace
}  // namespace lockstep::watchdog
