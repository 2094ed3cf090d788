// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A GPU's tensors for benchmarks, in the layouts of both contenders.
#include "kernels/optimizers/rule_steps.hpp"
#include "tests/bench/kernels/bench.hpp"

#include <random>

namespace lockstep::bench {
namespace {

std::vector<float> numbers(std::size_t size) {
  std::minstd_rand engine(static_cast<std::uint32_t>(size) + 1);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(engine() % 2048) / 1024.0F - 1.0F;
  return values;
}

/// [row][column] to [column][row].
template <typename T>
std::vector<T> transposed(const std::vector<T>& values, int columns) {
  const auto width = static_cast<std::size_t>(columns), height = values.size() / width;
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i % width * height + i / width] = values[i];
  return result;
}

}  // namespace

template <typename T>
T* GpuMemory::scratch(const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  buffers_.emplace_back(device_, bytes);
  stream_.copy_to_device(buffers_.back().data(), values.data(), bytes);
  stream_.synchronize();
  return reinterpret_cast<T*>(buffers_.back().data());
}
template std::int64_t* GpuMemory::scratch(const std::vector<std::int64_t>&);

template <typename T>
BothLayouts<T> GpuMemory::both_layouts(const std::vector<T>& values) {
  return {scratch(values), scratch(transposed(values, batch_))};
}

BothLayouts<float> GpuMemory::floats(int features, int passes) {
  const auto size = static_cast<std::size_t>(features) * static_cast<std::size_t>(batch_);
  bytes_of_call_ += static_cast<double>(size * sizeof(float)) * passes;
  return both_layouts(numbers(size));
}

BothLayouts<float> GpuMemory::gradient(const ImageShape& image, int pool) {
  auto values = numbers(static_cast<std::size_t>(image.features()) * static_cast<std::size_t>(batch_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int pixel = static_cast<int>(i) / batch_ % (image.height * image.width);
    const int row = pixel / image.width, column = pixel % image.width;
    if (row >= image.height / pool * pool || column >= image.width / pool * pool) values[i] = 0;
  }
  bytes_of_call_ += static_cast<double>(values.size() * sizeof(float));
  return both_layouts(values);
}

float* GpuMemory::weights(std::size_t size, int passes) {
  bytes_of_call_ += static_cast<double>(size * sizeof(float)) * passes;
  return scratch(numbers(size));
}

BothLayouts<std::uint8_t> GpuMemory::bytes(int features, unsigned below) {
  std::minstd_rand engine(1);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(features) * static_cast<std::size_t>(batch_));
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(engine() / 16 % below);
  bytes_of_call_ += static_cast<double>(values.size());
  return both_layouts(values);
}

BothLayouts<std::int64_t> GpuMemory::sums(std::size_t size) {
  const std::vector<std::int64_t> zeros(size);
  bytes_of_call_ += 2 * static_cast<double>(size * sizeof(std::int64_t));
  return {scratch(zeros), scratch(zeros)};
}

std::int32_t* GpuMemory::labels(int classes) {
  std::vector<std::int32_t> values;
  for (int i = 0; i < batch_; ++i) values.push_back(i * 7 % classes);
  return scratch(values);
}

StepState* GpuMemory::state() {
  return scratch(
      std::vector<StepState>{{.scalars = pack_scalars(SgdStep{.rate = 1e-6F, .momentum = 0.5F}), .step = 5}});
}

template <typename T>
std::vector<double> GpuMemory::read(const DeviceOps& ops, const BothLayouts<T>& tensor, int features,
                                    int samples) {
  std::vector<T> values(static_cast<std::size_t>(features) * static_cast<std::size_t>(samples));
  stream_.copy_to_host(values.data(), tensor(ops), values.size() * sizeof(T));
  stream_.synchronize();
  if (!ops.batch_innermost()) values = transposed(values, features);
  return {values.begin(), values.end()};
}
template std::vector<double> GpuMemory::read(const DeviceOps&, const BothLayouts<float>&, int, int);
template std::vector<double> GpuMemory::read(const DeviceOps&, const BothLayouts<std::int64_t>&, int, int);

}  // namespace lockstep::bench
