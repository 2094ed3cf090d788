// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/models/random_networks/random_case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::test {
namespace {

ImageShape random_shape(Dice& dice) {
  const int channels = dice.between(1, 5);
  if (dice.chance(0.1)) return {dice.between(1, 40), 1, 1};
  if (dice.chance(0.2)) return {channels, dice.between(1, 15), dice.between(1, 15)};
  const int height = dice.between(4, 15);
  return {channels, height, std::clamp(height + dice.between(-4, 4), 1, 15)};
}

Dataset random_dataset(Dice& dice, const ImageShape& shape, int classes, int samples, bool as_bytes) {
  Dataset set;
  set.name = "random";
  set.shape = shape;
  set.classes = classes;
  for (int i = 0; i < samples; ++i) set.labels.push_back(dice.between(0, classes - 1));
  const auto size = static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(samples);
  if (as_bytes) {
    set.images = AlignedBuffer<std::uint8_t>(size);
    for (auto& pixel : set.images.span()) pixel = static_cast<std::uint8_t>(dice.between(0, 255));
    for (int c = 0; c < shape.channels; ++c) {
      const float deviation = 0.29F + 0.02F * static_cast<float>(c);
      set.scales.scale.push_back(1.0F / (255.0F * deviation));
      set.scales.shift.push_back(-0.5F / deviation);
    }
  } else {
    set.features = AlignedBuffer<float>(size);
    for (auto& feature : set.features.span()) feature = dice.uniform(-1.7F, 1.7F);
  }
  return set;
}

/// Small batches and small grains are as likely as large ones.
int random_count(Dice& dice, int most) {
  return dice.between(1, dice.one_of({std::min(4, most), std::min(20, most), most}));
}

Job random_job(Dice& dice, std::uint64_t seed) {
  Job job;
  job.data.global_batch = random_count(dice, 100);
  job.data.shuffle = dice.chance(0.8);
  job.train.seed = seed * 7919 + 1;
  job.train.optimizer = {.kind = "sgd",
                         .lr = dice.one_of({0.01, 0.1, 0.5}),
                         .momentum = dice.one_of({0.1, 0.5, 0.9}),
                         .weight_decay = dice.chance(0.3) ? 0.01 : 0.0,
                         .nesterov = dice.chance(0.3)};
  job.parallel.grain = random_count(dice, 70);
  job.parallel.threads = dice.between(1, 2);
  job.parallel.bucket_bytes = dice.one_of<std::size_t>({4, 4096, std::size_t{1} << 20});
  job.parallel.determinism = dice.chance(0.15) ? Determinism::kOff : Determinism::kWorld;
  return job;
}

}  // namespace

RandomCase make_random_case(std::uint64_t seed) {
  Dice dice(seed);
  RandomCase result;
  result.seed = seed;
  const ImageShape shape = random_shape(dice);
  const int classes = dice.between(2, 12);
  result.yaml = random_layers(dice, shape, classes);
  result.job = random_job(dice, seed);
  // One number has no variance, and the difference of two says little beside its rounding.
  const bool looks_at_batch = result.yaml.find("batch_norm") != std::string::npos;
  const int least = looks_at_batch ? 6 : 1;
  result.job.data.global_batch = std::max<std::int64_t>(result.job.data.global_batch, least);
  const int batch = static_cast<int>(result.job.data.global_batch);
  const int grains = (batch + result.job.parallel.grain - 1) / result.job.parallel.grain;
  result.ranks = dice.chance(0.3) ? dice.between(1, std::min(3, grains)) : 1;

  const bool as_bytes = dice.chance(0.5);
  auto data = std::make_shared<TrainTestData>();
  data->train = random_dataset(dice, shape, classes, batch + dice.between(least, batch), as_bytes);
  data->test = random_dataset(dice, shape, classes, random_count(dice, 100), as_bytes);
  data->origin = "made in memory";
  result.data = std::move(data);
  return result;
}

std::string RandomCase::describe() const {
  const Dataset& train = data->train;
  return fmt::format(
      "{}# seed {}: input {}x{}x{} of {}, {} classes, batch {} and {}, grain {}, {} ranks, {} threads, "
      "buckets of "
      "{}, determinism {}, lr {}, momentum {}, weight decay {}{}\n",
      yaml, seed, train.shape.channels, train.shape.height, train.shape.width,
      train.images.size() > 0 ? "bytes" : "fp32", train.classes, job.data.global_batch,
      train.size() - job.data.global_batch, job.parallel.grain, ranks, job.parallel.threads,
      job.parallel.bucket_bytes, spelt(job.parallel.determinism), job.train.optimizer.lr,
      job.train.optimizer.momentum, job.train.optimizer.weight_decay,
      job.train.optimizer.nesterov ? ", nesterov" : "");
}

}  // namespace lockstep::test
