// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Processes that end, are stopped or are held by a debugger, as watchdogs of their host see them.
#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/rendezvous.hpp"
#include "comm/watch/watchdog_thread.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::watchdog {
namespace {

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
  expect_said(encode(Goodbye{}), "", "initiating: rank 5\n");
  expect_said(encode(Leaving{71, 5, true}), "", "^all leave\n$");
}

TEST_F(LostRanksDeathTest, AVerdictThatAnotherRankHasWrittenDownIsNotSaidAgain) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("verdict")) << "verdict: ...\n";
  expect_said({}, directory.path("verdict"), "^all leave\n$");
}

/// The process of rank 1 is stopped, and says nothing after its first beat. It beats again when it hears that it is
/// silent. By its beats a debugger has it: no verdict comes.
TEST(WatchdogThreadTest, BeatsTellTheStateOfARankOfThisHostWhileItIsSilent) {
  constexpr std::chrono::milliseconds kTimeout{600};  // silent after half of it
  constexpr int kEnough = 100;
  const pid_t child = new_process();
  std::map<int, char> first_states;  ///< by the rank that a beat names
  bool is_back = false;
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
    for (int beats = 0; beats < kEnough && !is_back;) {
      parser.feed(std::span(bytes).first(rank_1.read_some(asio::buffer(bytes))));
      while (const auto message = parser.next()) {
        const auto* heard = std::get_if<Beat>(&*message);
        if (heard == nullptr) continue;
        ++beats;
        first_states.try_emplace(heard->witnessed_rank, heard->witnessed_state);
        is_back = is_back || (first_states.contains(1) && heard->witnessed_rank == -1);
        if (heard->witnessed_rank == 1) asio::write(rank_1, asio::buffer(beat));
      }
    }
  };
  run_thread_ranks(1, listen, kTimeout);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(first_states, (std::map<int, char>{{-1, '?'}, {1, 'T'}}));
  EXPECT_TRUE(is_back) << "its beats are heard again, and none is silent";
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

/// The text as it is from the state on; the seventh word holds the flags.
TEST(ProcessStateTest, TheStateOrAFlagShowsThatAProcessEnds) {
  for (const char* living : {"S 4 4 4 4 4 0 4", "R 1 1 1 0 -1 4194560 4"})
    EXPECT_FALSE(shows_end(living)) << living;
  for (const char* ending :
       {"", "X 0 0 0 0 -1 0 0", "Z 0 0 0 0 -1 0 0", "S 0 0 0 0 0 4 0", "R 1 1 1 0 -1 4194564 0"})
    EXPECT_TRUE(shows_end(ending)) << ending;
}

/// The parent is the child's debugger, where the system and another debugger allow that. A watchdog there has patience.
TEST(ProcessStateTest, AProcessThatADebuggerHasKnowsIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(0);
    run_thread_ranks(1, [](Communicator& comm) {
      const WatchdogThread watchdog(comm, *call_roll(comm));
      for (int tries = 0; !watchdog.has_patience(); ++tries) {
        if (tries == 60'000) ::_exit(2);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    ::_exit(is_traced() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::watchdog
