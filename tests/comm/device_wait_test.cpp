// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Waiting for work on a device that may never end.
#include "comm/device_collectives.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>

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
  void all_reduce(Stream& /*stream*/, std::int64_t* /*device*/, std::size_t /*count*/) override {}
  void all_reduce(Stream& /*stream*/, float* /*device*/, std::size_t /*count*/) override {}
  void check() override { check_(); }

 private:
  std::function<void()> check_;
};

void alone(const std::function<void(Communicator&)>& body) {
  run_thread_ranks(1, body, std::chrono::milliseconds(50));
}

TEST(DeviceWaitTest, EndsWhenTheEventIsDone) {
  alone([](Communicator& comm) {
    CountingEvent done_already(0), done_later(100);
    EXPECT_NO_THROW(wait_for(done_already, comm, "nothing", nullptr));
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
    wait_for(done_later, comm, "something", &fine);
    EXPECT_GE(pauses - before, kQuestions - 2);
  });
}

TEST(DeviceWaitTest, WorkThatNeverEndsIsAPeerLostAndNamed) {
  alone([](Communicator& comm) {
    CountingEvent never(kNever);
    try {
      wait_for(never, comm, "the training steps", nullptr);
      ADD_FAILURE() << "no error";
    } catch (const PeerLostError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 0 of 1 on " + comm.host()), std::string::npos) << text;
      EXPECT_NE(text.find("the training steps"), std::string::npos) << text;
    }
  });
}

TEST(DeviceWaitTest, AnErrorOfTheAllReduceEndsTheWait) {
  alone([](Communicator& comm) {
    CountingEvent never(kNever);
    AllReduceThat fails([] { throw std::runtime_error("cable cut"); });
    EXPECT_THROW(wait_for(never, comm, "the training steps", &fails), std::runtime_error);
  });
}

TEST(DeviceWaitTest, DoneWorkIsNotAskedForErrors) {
  alone([](Communicator& comm) {
    CountingEvent done(0);
    AllReduceThat fails([] { throw std::runtime_error("cable cut"); });
    EXPECT_NO_THROW(wait_for(done, comm, "the training steps", &fails));
  });
}

}  // namespace
}  // namespace lockstep::testing
