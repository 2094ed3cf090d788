// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between stages: through the host, within a rank, and over links between GPUs.
#include "trainer/parallel/stage_links.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "kernels/device_buffer.hpp"
#include "tests/support/held_device.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/parallel/strict_link.hpp"

namespace lockstep::stage_links_test {
namespace {

using test::holds_messages, test::make_strict_link, test::seen, testing::HeldDevice, testing::HeldStream;

class NotedStream final : public HeldStream {
 public:
  using HeldStream::HeldStream;
  void record(Event& event) override {
    ++seen.records;
    HeldStream::record(event);
  }
};

/// A rank with its GPU and its end of the links.
struct GpuRank {
  GpuRank(Communicator& comm, const StagePlan& plan) {
    seen = {};
    auto held = std::make_unique<HeldDevice>();
    device = held.get();
    gpu.device = std::move(held);
    gpu.make_link = make_strict_link;
    passes = std::make_unique<NotedStream>(device->inner().make_stream());
    links = make_stage_links(plan, comm, &gpu, passes.get());
  }
  void send(int from, int to, const std::vector<float>& values) const {
    const auto memory = upload(*device, *passes, values);
    links->send(from, to, {memory.data(), values.size()});
  }
  std::vector<float> receive(int from, int to, std::size_t size) const {
    const DeviceBuffer<float> memory(*device, size);
    links->receive(from, to, {memory.data(), size});
    return download(*passes, memory.data(), size);
  }
  std::size_t bytes() const { return device->inner().memory_use().allocated; }
  void look_after() const {
    for (int i = 0; i < 100; ++i) links->look_after();
  }
  /// Until another rank waits for a message, and has most likely said so.
  void await(const std::atomic<RankActivity*>& other) const {
    while (!other.load()->status().place_text().starts_with("stage")) look_after();
    for (int i = 0; i < 10; ++i, std::this_thread::yield()) look_after();
  }

  HeldDevice* device = nullptr;
  Gpu gpu;
  std::unique_ptr<Stream> passes;
  std::unique_ptr<StageLinks> links;
};

StagePlan plan_of(std::vector<std::vector<std::string>> stages, std::vector<std::int64_t> placement,
                  int ranks, const char* first = "linear: 8") {
  const std::string layers = std::string("layers:\n  - ") + first +
                             "\n  - linear: 8\n  - linear: {name: third, out: 8}\n"
                             "  - linear: {name: last, out: classes}\n";
  return plan_stages({.stages = {0, std::move(stages)}, .placement = std::move(placement)},
                     Network::parse(layers, "four.yaml", {1, 4, 4}, 10), ranks);
}

std::vector<float> message(int pipeline, int number, std::size_t size = 4) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * pipeline + 10 * number));
  return values;
}

constexpr std::chrono::seconds kLong{60};  // until a wait in vain ends

/// Two pipelines; in each, the second of three ranks has two of four stages.
TEST(StageLinksTest, MessagesBetweenGpusLeaveWhenTheyAreMadeAndBothEndsAreThere) {
  const StagePlan plan = plan_of({{"fc1"}, {"fc2"}, {"third"}, {"last"}}, {0, 1, 1, 2}, 6);
  std::array<std::atomic<RankActivity*>, 6> activities = {};
  const auto exchange = [&](Communicator& comm) {
    const GpuRank rank(comm, plan);
    const int me = comm.rank(), pipeline = me / 3, place = me % 3;
    at(activities, me) = &comm.activity();
    EXPECT_EQ(seen.links, place == 1 ? 4 : 2);
    EXPECT_EQ(rank.links->name(), "strict, from GPU to GPU");
    std::size_t bytes = 0;
    for (const std::size_t size : {4U, 4U, 4U, 6U, 4U}) {
      const int started = seen.started;
      rank.device->held = place == 0;
      if (place == 0) rank.send(0, 1, message(pipeline, 1, size));
      if (place == 0) rank.send(0, 1, message(pipeline, 2, 4));
      if (place == 2) rank.send(3, 2, message(pipeline, 5));
      rank.look_after();
      comm.barrier();  // until here the other end is not there
      EXPECT_EQ(seen.started, started);
      if (place == 0) {
        rank.await(at(activities, me + 1));
        EXPECT_EQ(seen.started, started) << "the message is not made";
        rank.device->held = false;
        EXPECT_EQ(rank.receive(1, 0, 4), message(pipeline, 4));
      } else if (place == 2) {
        EXPECT_EQ(rank.receive(2, 3, 4), message(pipeline, 3));
      } else {
        rank.send(1, 2, rank.receive(0, 1, size));
        EXPECT_EQ(rank.receive(1, 2, size), message(pipeline, 1, size));
        EXPECT_EQ(rank.receive(0, 1, 4), message(pipeline, 2, 4));
        rank.send(2, 3, message(pipeline, 3));
        EXPECT_EQ(rank.receive(3, 2, 4), message(pipeline, 5));
        rank.send(1, 0, message(pipeline, 4));
      }
      rank.links->flush();
      EXPECT_EQ(seen.ended, seen.started);
      EXPECT_TRUE(bytes == 0 || size == 6 || rank.bytes() == bytes)
          << "copies have the memory of earlier ones";
      bytes = rank.bytes();
      EXPECT_GT(bytes, 0U);
      comm.barrier();
    }
    const std::array records = {3, 6, 2};
    EXPECT_EQ(seen.records, 5 * at(records, place)) << "of copies, and of passes before a message";
  };
  run_thread_ranks(6, exchange, kLong);
}

/// The rank in the middle has one for each of the others.
TEST(StageLinksTest, AGpuTakesPartInOneMessageAtATimeAndWaitsForNoneInVain) {
  const StagePlan plan = plan_of({{"fc1"}, {"fc2"}, {"third", "last"}}, {0, 1, 2}, 3);
  for (const bool all_are_there : {true, false}) {
    std::array<std::atomic<RankActivity*>, 3> activities = {};
    std::atomic<bool> last_one_has_it = false;
    const auto exchange = [&](Communicator& comm) {
      const GpuRank rank(comm, plan);
      at(activities, comm.rank()) = &comm.activity();
      if (comm.rank() == 1) holds_messages = all_are_there;
      comm.barrier();
      if (comm.rank() == 0) {
        while (!all_are_there && !last_one_has_it) std::this_thread::yield();
        EXPECT_EQ(rank.receive(1, 0, 4), message(0, 1));
      } else if (comm.rank() == 2) {
        EXPECT_EQ(rank.receive(1, 2, 4), message(0, 2));
        last_one_has_it = true;
      } else {
        rank.send(1, 0, message(0, 1));
        rank.send(1, 2, message(0, 2));
        for (const int other : {0, 2})
          if (all_are_there) rank.await(at(activities, other));
        EXPECT_LE(seen.started, all_are_there ? 1 : 2);
        holds_messages = false;
        rank.links->flush();
        EXPECT_EQ(seen.ended, 2);
      }
      comm.barrier();
    };
    run_thread_ranks(3, exchange, kLong);
  }
}

TEST(StageLinksTest, StagesOfARankHandOverInOrder) {
  const StagePlan plan = plan_of({{"fc1"}, {"fc2", "third", "last"}}, {0, 0}, 1);
  run_thread_ranks(1, [&](Communicator& comm) {
    const GpuRank rank(comm, plan);
    EXPECT_EQ(rank.links->name(), "on the device");
    const auto on_host = make_stage_links(plan, comm, nullptr, nullptr);
    const std::vector<float> first = message(0, 1), second = message(0, 2);
    std::vector<float> values(4), small(3);
    EXPECT_THROW(on_host->receive(0, 1, values), InternalError) << "there is none";
    EXPECT_THROW(rank.receive(0, 1, 4), InternalError) << "there is none";
    for (const auto& sent : {first, second}) {
      rank.send(0, 1, sent);
      on_host->send(0, 1, sent);
    }
    EXPECT_THROW(on_host->receive(0, 1, small), InternalError) << "it is larger";
    EXPECT_THROW(rank.receive(0, 1, 3), InternalError) << "it is larger";
    for (const auto& sent : {first, second}) {
      EXPECT_EQ(rank.receive(0, 1, 4), sent);
      on_host->receive(0, 1, values);
      EXPECT_EQ(values, sent);
    }
    EXPECT_GT(rank.bytes(), 0U) << "for the next copies";
  });
}

TEST(StageLinksTest, LinksHaveTagsOfTheirOwnAndOnlyGradientsThatAreWanted) {
  const std::array tags = {StageLinks::tag_of(0, 1), StageLinks::tag_of(1, 0), StageLinks::tag_of(1, 2),
                           StageLinks::tag_of(2, 1)};
  EXPECT_EQ(tags, (std::array{0, 1, 2, 3}));
  EXPECT_NE(StageLinks::kStateTag, StageLinks::kLifeTag);
  const StagePlan plan = plan_of({{"relu1"}, {"fc1"}, {"third", "last"}}, {0, 1, 2}, 3, "relu");
  run_thread_ranks(3, [&](Communicator& comm) {
    const GpuRank rank(comm, plan);
    EXPECT_EQ(seen.links, at(std::array{1, 3, 2}, comm.rank())) << "none back to the first stage";
  });
}

TEST(StageLinksTest, MessagesStayOnADeviceThatHasAllStagesOrLinks) {
  StagePlan plan;
  Gpu gpu;
  EXPECT_FALSE(messages_stay_on_device(plan, nullptr));
  EXPECT_TRUE(messages_stay_on_device(plan, &gpu));
  plan.width = 2;
  EXPECT_FALSE(messages_stay_on_device(plan, &gpu));
  gpu.make_link = [](Communicator&, Device&, LinkEnd) { return std::unique_ptr<DeviceLink>(); };
  EXPECT_TRUE(messages_stay_on_device(plan, &gpu));
  run_thread_ranks(1, [&](Communicator& comm) {
    EXPECT_EQ(make_stage_links(plan, comm, &gpu, nullptr)->name(), "through pinned host memory");
  });
}

}  // namespace
}  // namespace lockstep::stage_links_test
