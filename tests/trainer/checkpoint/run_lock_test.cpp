// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two jobs, one run directory: only one gets it, and only while it lives.
#include "trainer/checkpoint/run_lock.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

class RunLockTest : public ::testing::Test {
 protected:
  std::string file() const { return run_.path() + "/lock"; }
  void leave_behind(const std::string& owner) const { std::ofstream(file()) << owner; }
  std::string refusal(const std::string& job) {
    const std::string why =
        test::error_of<IoError>([&] { RunLock(Env::posix(), run_.path(), job, patience_); });
    return why.empty() ? "granted" : why;
  }

  TemporaryDirectory run_;
  LockPatience patience_;
};

std::string owner_text(const LockOwner& owner) {
  return R"({"host":")" + owner.host + R"(","boot_id":")" + owner.boot_id + R"(","pid":)" +
         std::to_string(owner.pid) + R"(,"start_ticks":)" + std::to_string(owner.start_ticks) +
         R"(,"started":"2026-01-01","job":"old.yaml"})";
}

TEST_F(RunLockTest, SecondJobIsRefusedAndToldWhoHoldsIt) {
  const RunLock lock(Env::posix(), run_.path(), "mnist.yaml", {});
  const auto owner = lock_owner(Env::posix(), run_.path());
  ASSERT_TRUE(owner);
  patience_.say = [](const std::string& line) { ADD_FAILURE() << "it does not wait: " << line; };
  EXPECT_EQ(
      refusal("other.yaml"),
      fmt::format("{}: this run directory belongs to job mnist.yaml (host {}, pid {}, since {}): it is still "
                  "running; wait for it, stop it, or set another run.dir",
                  file(), host_name(), ::getpid(), owner->started));
  EXPECT_EQ(owner->started.size(), 20U) << owner->started;  // "2026-11-29T08:00:00Z"
  EXPECT_EQ(owner->boot_id, host_boot_id());
  EXPECT_TRUE(is_running(*owner));
  leave_behind("{");
  EXPECT_EQ(refusal("other.yaml"),
            file() + ": another job is using this run directory; wait for it, or set another run.dir");
}

TEST_F(RunLockTest, AProcessThatThereIsNotDoesNotRun) {
  LockOwner owner = LockOwner::self("x");
  owner.pid = std::numeric_limits<std::int32_t>::max();
  for (const std::uint64_t ticks : {0U, 1U}) {
    owner.start_ticks = ticks;
    EXPECT_FALSE(is_running(owner)) << ticks;
  }
}

TEST_F(RunLockTest, ReleasedLockIsFree) {
  { const RunLock lock(Env::posix(), run_.path(), "a", {}); }
  EXPECT_EQ(text_of(file()), "") << "another host may go on at once";
  EXPECT_EQ(refusal("b"), "granted");
}

TEST_F(RunLockTest, LockOfAKilledProcessIsTakenOver) {
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(Env::posix(), run_.path(), "killed.yaml", {});
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  test::expect_words(text_of(file()), {"killed.yaml"});  // it got as far as the lock
  EXPECT_EQ(refusal("next.yaml"), "granted");
}

TEST_F(RunLockTest, AnOwnerThatIsAboutToEndIsWaitedForAndThatIsSaid) {
  auto lock = std::make_unique<RunLock>(Env::posix(), run_.path(), "ending.yaml", LockPatience{});
  std::vector<std::string> said;
  patience_ = {std::chrono::seconds(60), [&](const std::string& line) {
                 said.push_back(line);
                 lock.reset();
               }};
  EXPECT_EQ(refusal("next.yaml"), "granted");
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0], file() + ": another job is using this run directory; waiting 60 s for its end");
}

TEST_F(RunLockTest, PatienceHasAnEnd) {
  const RunLock lock(Env::posix(), run_.path(), "parent.yaml", {});
  patience_.limit = std::chrono::milliseconds(120);
  EXPECT_NE(refusal("next.yaml").find("still running"), std::string::npos);
}

TEST_F(RunLockTest, LiveOwnerIsRespectedEvenWhereLocksDoNotWork) {
  leave_behind(owner_text(LockOwner::self("x")));
  EXPECT_NE(refusal("b").find("old.yaml"), std::string::npos);
}

/// As "a (b)\nR 1": the first line of its stat says nothing of its start.
TEST_F(RunLockTest, AnOwnerMayHaveAnyName) {
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  ::prctl(PR_SET_NAME, "a (b)\nR 1");
  const LockOwner owner = LockOwner::self("x");
  const bool runs = is_running(owner);
  ::prctl(PR_SET_NAME, name);
  EXPECT_TRUE(runs);
  EXPECT_EQ(owner.start_ticks, LockOwner::self("x").start_ticks);
}

TEST_F(RunLockTest, OwnerWhoseEndItsParentHasNotAskedForIsGone) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = owner_text(LockOwner::self("x"));
    ::_exit(::write(pipe_ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  std::string text(4096, ' ');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(pipe_ends[0], text.data(), text.size()), 0)));
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  leave_behind(text);
  EXPECT_EQ(refusal("b"), "granted");
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST_F(RunLockTest, LockOfAnOwnerThatIsGoneIsTakenOver) {
  const std::function<void(LockOwner&)> changes[] = {
      [](auto& owner) { owner.start_ticks += 1; },                          // another process has its pid
      [](auto& owner) { owner.boot_id = "another"; },                       // this host was restarted
      [](auto& owner) { owner.host = "node17", owner.start_ticks += 1; }};  // a container with another name
  for (const auto& change : changes) {
    LockOwner owner = LockOwner::self("x");
    change(owner);
    if (!on_same_host(owner, LockOwner::self())) continue;  // this machine has no boot id
    leave_behind(owner_text(owner));
    EXPECT_EQ(refusal("b"), "granted") << &change - changes;
  }
  leave_behind(R"({"host":"no)");
  EXPECT_EQ(refusal("b"), "granted") << "torn";
}

TEST_F(RunLockTest, OwnerOnAnotherHostIsRefusedNamingHostAndFile) {
  LockOwner owner = LockOwner::self("x");
  owner.host = "node17";
  owner.boot_id = "another";
  leave_behind(owner_text(owner));
  EXPECT_EQ(
      refusal("b"),
      fmt::format("{}: this run directory belongs to job old.yaml (host node17, pid {}, since 2026-01-01): "
                  "'mpirun --host HOST lockstep doctor --take-over RUN' asks that host whether the job is "
                  "gone, and frees the lock if so (otherwise delete this file once you know)",
                  file(), ::getpid()));
  std::filesystem::remove(file());
  EXPECT_EQ(refusal("b"), "granted");
}

TEST(LockOwnerTest, AHostIsKnownByItsNameOrByABootIdThatCouldBeRead) {
  struct Row {
    std::string host, boot_id;
    bool is_same;
  };
  LockOwner here = LockOwner::self(), other = here;
  const auto check = [&](const std::vector<Row>& rows) {
    for (const auto& [host, boot_id, is_same] : rows) {
      other.host = host, other.boot_id = boot_id;
      EXPECT_EQ(on_same_host(here, other), is_same) << here.boot_id << ", " << host << ", " << boot_id;
      EXPECT_EQ(on_same_host(other, here), is_same) << here.boot_id << ", " << host << ", " << boot_id;
    }
  };
  here.host = "node1", here.boot_id = "a";
  check({{"node1", "a", true}, {"node1", "b", true}, {"node1", "", true}, {"node2", "a", true}});
  check({{"node2", "b", false}, {"node2", "", false}});
  here.boot_id = "";
  check({{"node1", "", true}, {"node1", "a", true}, {"node2", "", false}});
}

TEST_F(RunLockTest, LockOfAHostThatLaunchRunHasLostIsTakenOver) {
  LockOwner owner = LockOwner::self("x");
  owner.boot_id = "another";
  const auto is_granted = [&](const char* host, const char* lost) {
    const test::SetVariable hosts("LOCKSTEP_LOST_HOSTS", lost);
    owner.host = host;
    leave_behind(owner_text(owner));
    return refusal("b") == "granted";
  };
  EXPECT_TRUE(is_granted("node17", "node17"));
  EXPECT_TRUE(is_granted("node17", "node3 node17.example"));
  EXPECT_TRUE(is_granted("node17.example", "node17 node3"));
  for (const char* others : {"", "node1", "node170 xnode17", "17"})
    EXPECT_FALSE(is_granted("node17", others)) << others;
  owner = LockOwner::self("x");
  EXPECT_FALSE(is_granted(owner.host.c_str(), "node17")) << "it runs";
}

TEST_F(RunLockTest, DirectoryThatIsNotItsOwnAnyMoreIsNoticed) {
  const std::string dir = run_.path("run");
  std::filesystem::create_directory(dir);
  const RunLock lock(Env::posix(), dir, "a", {});
  EXPECT_NO_THROW(lock.require_same_directory());
  std::filesystem::rename(dir, run_.path("other"));
  EXPECT_EQ(
      message_of<IoError>([&] { lock.require_same_directory(); }),
      dir +
          ": this run directory, or the lock in it, was removed, renamed or replaced while the run trained; "
          "nothing more is saved there. What it has saved is where the directory was moved to");
}

TEST_F(RunLockTest, MissingRunDirectoryIsAnIoError) {
  EXPECT_THROW(RunLock(Env::posix(), run_.path() + "/nowhere", "a", {}), IoError);
}

}  // namespace
}  // namespace lockstep
