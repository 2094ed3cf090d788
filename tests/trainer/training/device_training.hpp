// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A small network that one rank trains on a device, by graphs or without.
#pragma once

#include "comm/thread/thread_ranks.hpp"
#include "models/network.hpp"
#include "tests/support/lone_all_reduce.hpp"
#include "trainer/device/device_step.hpp"
#include "trainer/setup/job_setup.hpp"

namespace lockstep::step_graphs_test {

inline constexpr int kClasses = 3, kBatch = 5, kSamples = 128, kLastBatch = 3;
inline constexpr int kSteps = 20;  // one that runs directly, two series of eight, and three
inline constexpr int kLayers = 3;
inline constexpr ImageShape kImage = {1, 7, 7};

inline std::shared_ptr<const TrainTestData> make_data() {
  auto data = std::make_shared<TrainTestData>();
  Dataset& train = data->train;
  train.shape = kImage;
  train.classes = kClasses;
  train.scales = scales_of({.mean = {0}, .std = {1}}, kImage.channels);
  train.images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(kSamples * kImage.features()));
  for (std::size_t i = 0; i < train.images.size(); ++i)
    train.images.data()[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
  for (int n = 0; n < kSamples; ++n) train.labels.push_back(n * 7 % kClasses);
  return data;
}

enum class Reduce { kNone, kExact, kFp32 };

inline Job make_job(Reduce reduce) {
  Job job;
  job.train.optimizer = {.lr = 0.01, .momentum = 0.5};
  job.parallel.grain = 2;
  job.parallel.determinism = reduce == Reduce::kFp32 ? Determinism::kOff : Determinism::kWorld;
  return job;
}

/// One bucket, as small networks have on GPUs, whose gradients come from two streams; or one for each layer.
enum class Buckets { kOne, kEach };

/// Model to train.
struct Model {
  const char* layers =
      "  - conv2d: {out: 3, kernel: 3}\n  - max_pool: 2\n  - relu\n  - dropout: 0.3\n"
      "  - linear: 8\n  - relu\n  - linear: classes\n";
  std::vector<Augmentation> augment = {};
};

/// A small network in training on one rank.
class Training {
 public:
  /// @param at_a_time  samples: a share of more is computed in micro-batches
  /// @param comm       ranks that launch the same graphs; null: this one alone
  Training(Reduce reduce, GraphUse graphs, Buckets buckets = Buckets::kEach, int at_a_time = kBatch,
           const Model& model = {}, Communicator* comm = nullptr)
      : job_(make_job(reduce)),
        setup_(setup_of(reduce, buckets, model)),
        step_(setup_, *setup_.device.gpu, job_.parallel.graph,
              {.max_columns = at_a_time,
               .long_steps = at_a_time < kBatch,
               .global_batch = kBatch,
               .global_grains = 3,
               .steps_per_epoch = 1000,
               .longest_series = 64}),
        graphs_(step_, graphs, comm != nullptr ? *comm : *alone_) {
    set_order(kSamples - 1);
    std::vector<float> weights(parameters());
    setup_.network.initialise(5, weights);
    step_.stream().copy_to_device(step_.arena().weights(), weights.data(), weights.size() * sizeof(float));
    StepState start;
    start.scalars = step_.arena().weight_update().scalars(0);
    for (int i = 0; i < kLongestSeries; ++i) start.ahead[i] = step_.arena().weight_update().scalars(i + 1);
    step_.queue_state_to_device(start);
    step_.stream().synchronize();
  }

  void queue(const BatchShare& share, std::int64_t count) { graphs_.queue(share, count); }
  /// Without a graph.
  void queue_series(const BatchShare& share, int count) { step_.queue_series(share, count); }
  void turn_order_at_first_all_reduce() {
    all_reduce_->at_first_call([this] { turn_order(); });
  }
  void turn_order() { set_order(kSamples / 2 + 1); }
  int all_reduces() const { return all_reduce_->calls(); }
  void fail_at_all_reduce(int call) { all_reduce_->fail_at(call); }
  void copy_sums_at_first_all_reduce() {
    all_reduce_->copy_at_first_call(*setup_.device.gpu->device, step_.arena().counters() + kCounterSlots,
                                    parameters());
  }
  /// Arena order.
  std::vector<std::int64_t> copied_sums() {
    std::vector<std::int64_t> sums(parameters());
    step_.stream().copy_to_host(sums.data(), all_reduce_->copy().data(), all_reduce_->copy().bytes());
    step_.stream().synchronize();
    return sums;
  }
  const ParameterLayout& layout() const { return setup_.network.parameters(); }

  /// Expects that this many steps were done.
  std::vector<float> weights(std::int64_t steps) {
    step_.queue_state_to_host();
    std::vector<float> weights(parameters());
    step_.stream().copy_to_host(weights.data(), step_.arena().weights(), weights.size() * sizeof(float));
    step_.stream().synchronize();
    EXPECT_EQ(step_.state().steps_done, steps);
    return weights;
  }

 private:
  JobSetup setup_of(Reduce reduce, Buckets buckets, const Model& model) {
    job_.data.augment = model.augment;
    Network network = Network::parse("layers:\n" + std::string(model.layers), "test.yaml", kImage, kClasses);
    auto gpu = std::make_shared<Gpu>();
    gpu->device = test::platform_under_test().make_device(0);
    gpu->ops = test::platform_under_test().make_ops(*gpu->device);
    if (reduce != Reduce::kNone) {
      auto lone =
          std::make_unique<test::LoneAllReduce>(*gpu->device, kCounterSlots + network.parameters().size);
      all_reduce_ = lone.get();
      gpu->all_reduce = std::move(lone);
    }
    BucketPlan plan = plan_buckets_of_size(network, {}, buckets == Buckets::kOne ? std::size_t{1} << 30 : 1);
    DeviceChoice choice;
    choice.gpu = std::move(gpu);
    JobSetup setup = make_setup(job_, make_data(), std::move(choice), std::move(network), std::move(plan));
    setup.augment = augment_plan_of(job_, setup.data->train);
    setup.mixer = SampleMixer(model.augment, kImage, job_.train.seed);
    return setup;
  }
  std::size_t parameters() const { return setup_.network.parameters().size; }
  /// All samples backwards, from this one on.
  void set_order(int first) {
    std::vector<std::int32_t> order(kSamples);
    for (int i = 0; i < kSamples; ++i) order[static_cast<std::size_t>(i)] = (first - i + kSamples) % kSamples;
    step_.set_order(order, setup_.mixer.draw(0, order, 0, kSamples));
  }

  Job job_;
  test::LoneAllReduce* all_reduce_ = nullptr;
  JobSetup setup_;
  std::shared_ptr<Communicator> alone_ = make_lone_rank();
  DeviceStep step_;
  StepGraphs graphs_;
};

}  // namespace lockstep::step_graphs_test
