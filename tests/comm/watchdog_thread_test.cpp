// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watchdogs from the roll call to the verdict, and the states of processes that they look at.
#include "comm/watch/watchdog_thread.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/rendezvous.hpp"
#include "common/machine.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(WatchdogThreadTest, GetsNoSignals) {
  constexpr unsigned long kSome = 1UL << (SIGTERM - 1) | 1UL << (SIGINT - 1) | 1UL << (SIGUSR1 - 1);
  const auto blocked = [&](const std::filesystem::path& thread) {
    return std::stoul(value_after(thread / "status", "SigBlk:"), nullptr, 16) & kSome;
  };
  const std::filesystem::path this_thread = "/proc/thread-self";
  run_thread_ranks(2, [&](Communicator& comm) {
    const unsigned long before = blocked(this_thread);
    const auto watchdog = Watchdog::start(comm);
    EXPECT_EQ(blocked(this_thread), before);
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

/// A stopped process that runs only when no other wants its core.
pid_t new_process() {
  const pid_t child = ::fork();
  if (child == 0) {
    const sched_param lowest{};
    ::sched_setscheduler(0, SCHED_IDLE, &lowest);
    for (;;) ::raise(SIGSTOP);
  }
  ::waitpid(child, nullptr, WUNTRACED);
  return child;
}

/// Rank 0 of a large job hears from rank 1 that rank 5 died. The process of rank 1 has just got a signal.
/// @param signal  0: none
/// @param host_of_1  empty: this one
/// @param last_word  of rank 1, in the same breath
[[noreturn]] void lose_ranks_1_and_5(pid_t process_of_1, int signal, const std::string& host_of_1,
                                     const std::vector<std::uint8_t>& last_word,
                                     const std::string& verdict_file) {
  run_thread_ranks(1, [&](Communicator& comm) {
    comm.activity().verdict_file.set(verdict_file);
    auto roll = call_roll(comm);
    roll->peers.resize(kMostDirect + 1, roll->peers.front());
    for (std::size_t rank = 0; rank < roll->peers.size(); ++rank)
      roll->peers[rank].who.rank = static_cast<int>(rank);
    roll->peers[1].who.pid = process_of_1;
    if (!host_of_1.empty()) roll->peers[1].who.host = host_of_1;
    const Hello hello{roll->token, 1, kMostDirect + 1};
    asio::io_context context;
    asio::ip::tcp::socket rank_1(context);
    const auto door = roll->acceptor.local_endpoint();
    WatchdogThread watchdog(comm, std::move(*roll));
    rank_1.connect(door);
    asio::write(rank_1, asio::buffer(encode(hello)));
    std::array<std::uint8_t, kHeadBytes> answer{};
    asio::read(rank_1, asio::buffer(answer));
    ::kill(process_of_1, signal);
    std::vector<std::uint8_t> news = encode(Relay{{{5, 0, Beat{}}, {5, 0, Died{}}}});
    news.insert(news.end(), last_word.begin(), last_word.end());
    asio::write(rank_1, asio::buffer(news));
    while (!watchdog.is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::fputs("all leave\n", stderr);
  std::_Exit(0);
}

class LostRanksDeathTest : public ::testing::Test {
 protected:
  void expect_said(const std::vector<std::uint8_t>& last_word, const std::string& verdict_file,
                   const char* said, int signal = SIGKILL, const std::string& host_of_1 = "") {
    const pid_t child = new_process();
    EXPECT_EXIT(lose_ranks_1_and_5(child, signal, host_of_1, last_word, verdict_file),
                ::testing::ExitedWithCode(0), said);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
};

TEST_F(LostRanksDeathTest, ARankOfThisHostWhoseProcessEndsDiedWithAnother) {
  expect_said({}, "", "initiating: rank(s 5, 1| 5; cascading: rank 1)\n");
}

TEST_F(LostRanksDeathTest, ARankThatLivesOrOfWhichAnotherHostKnowsDidNotDieWithIt) {
  expect_said({}, "", "initiating: rank 5\n", 0);
  expect_said({}, "", "initiating: rank 5\n", SIGKILL, "elsewhere");
}

TEST_F(LostRanksDeathTest, ARankThatEndsMayHaveSaidWhy) {
  expect_said(encode(Leaving{71, 5, true}), "", "^all leave\n$");
}

TEST_F(LostRanksDeathTest, AVerdictThatAnotherRankHasWrittenDownIsNotSaidAgain) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("verdict")) << "verdict: ...\n";
  expect_said({}, directory.path("verdict"), "^all leave\n$");
}

/// The process of rank 1 is stopped, and says nothing after its first beat. By that a debugger has it: no verdict comes.
TEST(WatchdogThreadTest, BeatsTellTheStateOfARankOfThisHostThatIsSilent) {
  constexpr std::chrono::milliseconds kTimeout{600};  // silent after half of it
  constexpr int kEnough = 100;
  const pid_t child = new_process();
  std::map<int, char> first_states;  ///< by the rank that a beat names
  const auto listen = [&](Communicator& comm) {
    auto roll = call_roll(comm);
    ASSERT_TRUE(roll);
    roll->peers.resize(2, roll->peers.front());
    roll->peers[1].who.rank = 1;
    roll->peers[1].who.pid = child;
    std::vector<std::uint8_t> said = encode(Hello{roll->token, 1, 2});
    const auto beat = encode(Beat{.where = {}, .traced = true});
    said.insert(said.end(), beat.begin(), beat.end());
    asio::io_context context;
    asio::ip::tcp::socket rank_1(context);
    const auto door = roll->acceptor.local_endpoint();
    const WatchdogThread watchdog(comm, std::move(*roll));
    rank_1.connect(door);
    asio::write(rank_1, asio::buffer(said));
    Parser parser;
    std::array<std::uint8_t, 1024> bytes{};
    for (int beats = 0; beats < kEnough && !first_states.contains(1);) {
      parser.feed(std::span(bytes).first(rank_1.read_some(asio::buffer(bytes))));
      while (const auto message = parser.next()) {
        const auto* heard = std::get_if<Beat>(&*message);
        if (heard == nullptr) continue;
        ++beats;
        first_states.try_emplace(heard->witnessed_rank, heard->witnessed_state);
      }
    }
  };
  run_thread_ranks(1, listen, kTimeout);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(first_states, (std::map<int, char>{{-1, '?'}, {1, 'T'}}));
}

TEST(ProcessStateTest, ProcessThatWasKilledIsEndingAtOnce) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof(one),
                      &one);  // one core: a killed child has not run when looked at
  for (int round = 0; round < 20; ++round) {
    const pid_t child = new_process();
    EXPECT_TRUE(runs_this_program(child));
    EXPECT_FALSE(is_ending(child)) << "a stopped process may go on";
    EXPECT_EQ(state_of_process(child), 'T');
    ::kill(child, SIGKILL);
    EXPECT_TRUE(is_ending(child)) << "though nothing has happened to it yet";
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_ending(child)) << "it is gone";
  }
  ::sched_setaffinity(0, sizeof(before), &before);
  EXPECT_FALSE(runs_this_program(::getppid()));
  EXPECT_EQ(state_of_process(std::numeric_limits<int>::max()), '?') << "no process has that number";
  EXPECT_TRUE(is_ending(std::numeric_limits<int>::max()));
}

/// The parent is the child's debugger, where the system and another debugger allow that.
TEST(ProcessStateTest, AProcessThatADebuggerHasKnowsIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool held = ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
    ::_exit(!held || is_traced() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::watchdog
