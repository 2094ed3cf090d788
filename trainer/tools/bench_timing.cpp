// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What benchmarks share: turns of as many calls as their seconds hold, and memory whose numbers are the same each time.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "trainer/tools/bench.hpp"
#include "trainer/tools/kernel_cases.hpp"

#include <algorithm>
#include <random>

namespace lockstep::bench {
namespace {

double time_turn(const std::function<void()>& candidate, double seconds) {
  const auto start = Clock::now();
  double elapsed = 0;
  long calls = 0;
  while (elapsed < seconds) {
    candidate();
    ++calls;
    elapsed = seconds_since(start);
  }
  return elapsed / static_cast<double>(calls);
}

}  // namespace

std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& candidates, int rounds,
                                        double seconds_per_turn) {
  std::vector<std::vector<double>> times(candidates.size());
  for (const auto& candidate : candidates) candidate();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      times[i].push_back(time_turn(candidates[i], seconds_per_turn));
    }
  }
  std::vector<double> medians;
  medians.reserve(times.size());
  for (auto& series : times) medians.push_back(median(std::move(series)));
  return medians;
}

double median(std::vector<double> values) {
  LOCKSTEP_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// BenchMemory: numbers that are the same each time, uploaded.

namespace {

std::vector<std::int64_t> random_integers(std::size_t size) {
  std::minstd_rand engine(1);
  std::vector<std::int64_t> values(size);
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(engine()) << 10;
  return values;
}

}  // namespace

template <typename T>
T* BenchMemory::upload(const std::vector<T>& values) {
  buffers_.emplace_back(device_, values.size() * sizeof(T));
  stream_.copy_to_device(buffers_.back().data(), values.data(), values.size() * sizeof(T));
  stream_.synchronize();
  return reinterpret_cast<T*>(buffers_.back().data());
}

float* BenchMemory::floats(std::size_t size) {
  std::minstd_rand engine(static_cast<std::uint32_t>(size) + 1);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(engine() % 2048) / 1024.0F - 1.0F;
  return upload(values);
}

std::int64_t* BenchMemory::integers(std::size_t size) {
  return upload(random_integers(size));
}

std::int64_t* BenchMemory::step_sums(std::size_t parameters, int samples) {
  auto values = random_integers(kCounterSlots + parameters);
  std::fill_n(values.begin(), kCounterSlots, 0);
  values[kSamples] = samples;
  return upload(values);
}

std::uint8_t* BenchMemory::bytes(std::size_t size, unsigned below) {
  std::minstd_rand engine(1);
  std::vector<std::uint8_t> values(size);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(engine() / 16 % below);
  return upload(values);
}

std::int32_t* BenchMemory::labels(std::size_t size, int classes) {
  std::vector<std::int32_t> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<std::int32_t>(i * 7) % classes;
  return upload(values);
}

StepState* BenchMemory::state() {
  return upload(
      std::vector<StepState>{{.scalars = pack_scalars(SgdStep{.rate = 1e-6F, .momentum = 0.5F}), .step = 5}});
}

// Launches the graph between two events and divides by the calls in it.

GraphTimer::GraphTimer(Device& device, Stream& stream, const QueueCall& queue, int calls, int launches)
    : stream_(stream),
      calls_(calls),
      launches_(launches),
      start_(device.make_event(Device::Timing::kOn)),
      end_(device.make_event(Device::Timing::kOn)) {
  queue(stream, 0);  // loads kernels, lets libraries choose and allocate
  stream.synchronize();
  stream.begin_capture();
  for (int call = 0; call < calls; ++call) queue(stream, call);
  graph_ = stream.end_capture();
}

double GraphTimer::seconds() {
  stream_.launch(*graph_);  // keeps the device busy while the host queues the rest
  stream_.record(*start_);
  for (int i = 0; i < launches_; ++i) stream_.launch(*graph_);
  stream_.record(*end_);
  stream_.synchronize();
  return end_->seconds_since(*start_) / (static_cast<double>(calls_) * launches_);
}

}  // namespace lockstep::bench
