// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine's graphs hold all-reduces, and NCCL's abort waits for such graphs: they go first.
#include "comm/thread/thread_ranks.hpp"
#include "models/backward_ranges.hpp"
#include "trainer/engine/step_engine.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr ImageShape kImage = {1, 4, 4};
constexpr int kClasses = 2, kSamples = 4;

Dataset make_set() {
  Dataset set;
  set.shape = kImage;
  set.classes = kClasses;
  set.images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(kSamples * kImage.features()));
  set.labels.assign(kSamples, 1);
  return set;
}

/// Queues nothing, and tells when it goes.
class MortalAllReduce final : public DeviceAllReduce {
 public:
  explicit MortalAllReduce(bool& gone) : gone_(gone) {}
  ~MortalAllReduce() override { gone_ = true; }
  MortalAllReduce(const MortalAllReduce&) = delete;
  MortalAllReduce& operator=(const MortalAllReduce&) = delete;

  std::string_view name() const override { return "mortal"; }
  bool on_stream() const override { return true; }
  void all_reduce(Stream& /*stream*/, std::int64_t* /*device*/, std::size_t /*count*/) override {}
  void all_reduce(Stream& /*stream*/, float* /*device*/, std::size_t /*count*/) override {}
  void check() override {}

 private:
  bool& gone_;
};

JobSetup make_setup(bool& gone) {
  Network network = Network::parse("layers:\n  - linear: classes\n", "test.yaml", kImage, kClasses);
  auto gpu = std::make_shared<Gpu>();
  gpu->device = emulated::platform().make_device(0);
  gpu->ops = emulated::platform().make_ops(*gpu->device);
  gpu->all_reduce = std::make_unique<MortalAllReduce>(gone);
  std::vector<GradientRange> ranges;
  for (const BackwardRange& range : backward_ranges(network)) ranges.push_back({range.offset, range.size, 0});
  BucketPlan plan = plan_buckets_of_size(ranges, sizeof(std::int64_t), std::size_t{1} << 20);
  DeviceChoice choice;
  choice.gpu = std::move(gpu);
  auto data = std::make_shared<TrainTestData>();
  data->train = make_set();
  data->test = make_set();
  return {std::move(data), std::move(choice), std::move(network), std::move(plan)};
}

TEST(EngineLifetimeTest, TheAllReduceStaysUntilTheEngineIsGone) {
  run_thread_ranks(1, [](Communicator& comm) {
    Job job;
    job.data.global_batch = 2;
    job.parallel.grain = 1;
    bool gone = false;
    JobSetup setup = make_setup(gone);
    std::unique_ptr<StepEngine> engine = make_step_engine(job, setup, comm);
    engine->commit_state();
    engine->run({}, 2, false);
    setup.device.gpu.reset();
    EXPECT_FALSE(gone);
    engine.reset();
    EXPECT_TRUE(gone);
  });
}

}  // namespace
}  // namespace lockstep
