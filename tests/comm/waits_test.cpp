// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Waits for other ranks, and for work on a device, that a lost rank or the deadline ends.
#include "comm/device/device_all_reduce.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
std::atomic<int> pauses = 0;
}  // namespace

// In place of the C library's, which std::this_thread's yield() and sleep_for() call.
extern "C" int sched_yield() {
  ++pauses;
  return static_cast<int>(syscall(SYS_sched_yield));
}
extern "C" int nanosleep(const timespec* wanted, timespec* left) {
  ++pauses;
  return static_cast<int>(syscall(SYS_nanosleep, wanted, left));
}

namespace lockstep::testing {
namespace {

using std::chrono::milliseconds;

/// Says that a rank is lost, or that a debugger holds one, as told.
class WatchThat final : public PeerWatch {
 public:
  bool over = false, patient = false;
  bool is_over() const noexcept override { return over; }
  bool has_patience() const noexcept override { return patient; }
  void drop_network() noexcept override {}
};

TEST(PeerWatchTest, ALostRankEndsWaitsOfPartsTooAndADebuggerMakesThemLonger) {
  run_thread_ranks(
      1,
      [](Communicator& comm) {
        const auto part = comm.split(0);
        WatchThat watch;
        comm.be_watched(&watch);
        EXPECT_EQ(part->watch(), &watch);
        const auto begun = Clock::now();
        PendingWork late([&] { return seconds_since(begun) > 0.02; });  // the limit is a millisecond
        watch.patient = true;
        EXPECT_NO_THROW(comm.wait(late, "a rank in a debugger"));
        watch.over = true;
        PendingWork never([] { return false; });
        EXPECT_THROW(part->wait(never, "a lost rank"), PeerLostError);
        watch.over = watch.patient = false;
        EXPECT_THROW(comm.wait(never, "a late rank"), PeerLostError);
        comm.be_watched(nullptr);
        EXPECT_THROW(comm.wait(never, "a late rank"), PeerLostError);
      },
      milliseconds(1));
}

TEST(PeerWatchTest, WaitsOfAPartAreForSomeAndSaySo) {
  run_thread_ranks(1, [](Communicator& comm) {
    const auto part = comm.split(0);
    RankStatus seen;
    PendingWork looks([&] { return seen = comm.activity().status(), true; });
    comm.wait(looks, "a barrier", Waiting::kForAll);
    EXPECT_EQ(seen.place_text(), "a barrier");
    EXPECT_EQ(seen.waiting, Waiting::kForAll);
    part->wait(looks, "a barrier", Waiting::kForAll);
    EXPECT_EQ(seen.place_text(), "its group: a barrier");
    EXPECT_EQ(seen.waiting, Waiting::kForSome);
    EXPECT_FALSE(comm.activity().status().waits());
  });
}

constexpr int kNever = -1;

/// Done when it was asked so often.
class CountingEvent final : public Event {
 public:
  explicit CountingEvent(int questions) : left_(questions) {}
  bool done() override { return left_ == 0 || (left_ > 0 && --left_ == 0); }
  double seconds_since(const Event& /*start*/) const override { return 0; }

 private:
  int left_;
};

class AllReduceThat final : public DeviceAllReduce {
 public:
  explicit AllReduceThat(std::function<void()> check) : check_(std::move(check)) {}
  std::string_view name() const override { return "test"; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream&, const std::int64_t*, std::int64_t*, std::size_t) override {}
  void all_reduce_into(Stream&, const float*, float*, std::size_t) override {}
  void check() override { check_(); }

 private:
  std::function<void()> check_;
};

void alone(const std::function<void(Communicator&)>& body) {
  run_thread_ranks(1, body, milliseconds(50));
}

TEST(DeviceWaitTest, EndsWhenTheEventIsDoneAndAsksDoneWorkForNoErrors) {
  alone([](Communicator& comm) {
    CountingEvent done_already(0), done_later(100);
    AllReduceThat fails([] { throw std::runtime_error("cable cut"); });
    EXPECT_NO_THROW(wait_for(done_already, comm, "nothing", &fails));
    EXPECT_NO_THROW(wait_for(done_later, comm, "something", nullptr));
  });
}

/// A launcher may have bound the rank, and with it NCCL's threads, to one core.
TEST(DeviceWaitTest, WhoWaitsForAnAllReduceOnAStreamGivesUpTheCoreEachTime) {
  run_thread_ranks(1, [](Communicator& comm) {
    constexpr int kQuestions = 100;
    CountingEvent done_later(kQuestions);
    AllReduceThat fine([] {});
    const int before = pauses;
    int meanwhile = 0;
    wait_for(done_later, comm, "something", &fine, [&] { ++meanwhile; });
    EXPECT_GE(pauses - before, kQuestions - 2);
    EXPECT_EQ(meanwhile, kQuestions - 1);
  });
}

TEST(DeviceWaitTest, WorkThatNeverEndsIsAPeerLostOrWhatTheAllReduceSays) {
  alone([](Communicator& comm) {
    CountingEvent never(kNever);
    expect_error<PeerLostError>([&] { wait_for(never, comm, "the training steps", nullptr); },
                                {"rank 0 of 1 on " + comm.host(), "the training steps"});
    AllReduceThat fails([] { throw std::runtime_error("cable cut"); });
    EXPECT_THROW(wait_for(never, comm, "the training steps", &fails), std::runtime_error);
  });
}

}  // namespace
}  // namespace lockstep::testing
