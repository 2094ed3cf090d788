// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A small network, sixteen samples, and a job that trains on them.
#pragma once
#include "comm/thread/thread_ranks.hpp"
#include "models/network.hpp"
#include "tests/support/held_device.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/setup.hpp"

namespace lockstep::data_parallel_test {

inline constexpr ImageShape kImage = {1, 4, 4};
inline constexpr int kClasses = 2, kSetSize = 16;

inline Dataset make_set(int samples = kSetSize) {
  Dataset set;
  set.shape = kImage;
  set.classes = kClasses;
  set.images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(samples * kImage.features()));
  set.labels.assign(static_cast<std::size_t>(samples), 1);
  set.scales = scales_of({.mean = {0}, .std = {1}}, kImage.channels);
  return set;
}

inline std::shared_ptr<TrainTestData> make_data() {
  auto data = std::make_shared<TrainTestData>();
  data->train = make_set();
  data->test = make_set();
  return data;
}

/// The emulated device, whose copies are late.
inline std::shared_ptr<Gpu> late_gpu() {
  auto device = std::make_unique<testing::HeldDevice>();
  auto gpu = std::make_shared<Gpu>();
  gpu->ops = emulated::platform().make_ops(device->inner());
  gpu->device = std::move(device);
  return gpu;
}

/// Queues nothing, takes its time, and tells when it goes.
class MortalAllReduce final : public DeviceAllReduce {
 public:
  explicit MortalAllReduce(bool& gone, double seconds = 0) : gone_(gone), time_(seconds) {}
  ~MortalAllReduce() override { gone_ = true; }
  MortalAllReduce(const MortalAllReduce&) = delete;
  MortalAllReduce& operator=(const MortalAllReduce&) = delete;

  std::string_view name() const override { return "mortal"; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream&, const std::int64_t*, std::int64_t*, std::size_t) override {
    ++calls;
    std::this_thread::sleep_for(time_);
  }
  void all_reduce_into(Stream&, const float*, float*, std::size_t) override {}
  void check() override {}

  int calls = 0;

 private:
  bool& gone_;
  std::chrono::duration<double> time_;
};

inline constexpr const char* kOneLayer = "layers:\n  - linear: classes\n";
inline constexpr std::size_t kOneBucket = std::size_t{1} << 20;  // bytes

/// @param bucket_bytes  kOneBucket, or 1: one for each layer
/// @param all_reduce    of a late_gpu(); none: of a CPU
inline JobSetup setup_of(const Job& job, const char* model, std::size_t bucket_bytes,
                         std::unique_ptr<DeviceAllReduce> all_reduce = nullptr,
                         std::shared_ptr<const TrainTestData> data = make_data()) {
  Network network = Network::parse(model, "test.yaml", kImage, kClasses);
  BucketPlan plan = plan_buckets_of_size(network, {}, bucket_bytes);
  DeviceChoice choice;
  if (all_reduce != nullptr) {
    choice.gpu = late_gpu();
    choice.gpu->all_reduce = std::move(all_reduce);
  }
  return make_setup(job, std::move(data), std::move(choice), std::move(network), std::move(plan));
}

inline Job make_job() {
  Job job;
  job.data.global_batch = 2;
  job.parallel.grain = 1;
  return job;
}

}  // namespace lockstep::data_parallel_test
