// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rig of the tests of device ops: a device, its ops, memory that shows overruns and gaps, and thread orders.
/// The emulator runs its threads in several orders. The same tests are built for the emulator and for GPUs.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// The platform this binary was built for.
const Platform& platform_under_test();
/// Seeds of thread orders to try: ten in the emulator; on a GPU, where order is the hardware's, two runs.
std::vector<std::uint64_t> thread_orders();
void set_thread_order(std::uint64_t seed);

/// A device with one stream and the native ops.
class DeviceRig {
 public:
  DeviceRig();

  Device& device() { return *device_; }
  DeviceOps& ops() { return *ops_; }
  Stream& stream() { return *stream_; }

  /// A copy in device memory, which starts `offset` elements after an aligned address.
  template <typename T>
  DeviceBuffer<T> upload(std::span<const T> values) {
    DeviceBuffer<T> buffer(*device_, values.size());
    stream_->copy_to_device(buffer.data(), values.data(), values.size_bytes());
    stream_->synchronize();
    return buffer;
  }
  template <typename T>
  DeviceBuffer<T> upload(const std::vector<T>& values) {
    return upload(std::span<const T>(values));
  }
  DeviceBuffer<float> upload(const std::vector<double>& values) {
    return upload(std::vector<float>(values.begin(), values.end()));
  }
  /// Every byte 0xFF: a float NaN, so that unwritten elements show.
  template <typename T>
  DeviceBuffer<T> poisoned(std::size_t size) {
    std::vector<T> values(size);
    if (size > 0) std::memset(values.data(), 0xFF, size * sizeof(T));
    return upload(values);
  }
  template <typename T>
  DeviceBuffer<T> zeroed(std::size_t size) {
    return upload(std::vector<T>(size, T{}));
  }
  /// Waits for the stream.
  template <typename T>
  std::vector<T> download(const DeviceBuffer<T>& buffer) {
    std::vector<T> values(buffer.size());
    stream_->copy_to_host(values.data(), buffer.data(), buffer.bytes());
    stream_->synchronize();
    return values;
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceOps> ops_;
  std::unique_ptr<Stream> stream_;
};

/// Runs `compute`, which returns a std::vector (or std::pair of them), in every thread order. Expects the
/// same bits each time and returns the first result.
template <typename Compute>
auto same_in_every_order(const Compute& compute) {
  const auto orders = thread_orders();
  set_thread_order(orders.front());
  auto first = compute();
  for (std::size_t i = 1; i < orders.size(); ++i) {
    set_thread_order(orders[i]);
    const auto again = compute();
    EXPECT_EQ(std::memcmp(again.data(), first.data(), first.size() * sizeof(first[0])), 0)
        << "another result in thread order " << orders[i];
  }
  set_thread_order(0);
  return first;
}

/// Numbers in [-1, 1) that are exact in fp32, the same for the same seed.
inline std::vector<double> random_numbers(std::size_t size, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<double> numbers(size);
  for (double& number : numbers)
    number = static_cast<double>(static_cast<std::int32_t>(engine() >> 8) - (1 << 23)) / (1 << 23);
  return numbers;
}

inline std::vector<float> random_floats(std::size_t size, std::uint32_t seed) {
  const std::vector<double> numbers = random_numbers(size, seed);
  return {numbers.begin(), numbers.end()};
}

/// A mask's byte for each of `size` windows of pool * pool elements.
inline std::vector<std::uint8_t> random_masks(std::size_t size, int pool, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint8_t> masks(size);
  for (auto& mask : masks) mask = static_cast<std::uint8_t>(engine() >> 8 & ((1U << (pool * pool)) - 1));
  return masks;
}

/// All NaN are one.
inline std::vector<std::uint32_t> bits_of(const std::vector<float>& numbers) {
  std::vector<std::uint32_t> bits;
  for (const float number : numbers)
    bits.push_back(std::isnan(number) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(number));
  return bits;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Each element within `tolerance` times the sum of the absolute values of its terms (or 1, if larger).
template <typename Actual>
void expect_close(std::span<const Actual> actual, std::span<const double> expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  std::size_t worst = 0;
  double worst_error = -1;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error =
        std::abs(static_cast<double>(actual[i]) - expected[i]) / std::max(1.0, std::abs(expected[i]));
    if (!(error <= worst_error)) worst = i, worst_error = error;
  }
  if (!actual.empty()) {
    EXPECT_LE(worst_error, tolerance)
        << what << ": element " << worst << " is " << actual[worst] << ", expected " << expected[worst];
  }
}

// Epilogues by themselves.

inline std::size_t size_after(const Epilogue& e, const ImageShape& image, int batch) {
  return std::size_t{1} * image.channels * e.out(image.height) * e.out(image.width) * batch;
}

/// Results of an epilogue and of its way back.
struct EpilogueResult {
  std::vector<float> y;
  std::vector<std::uint8_t> mask;
  std::vector<float> dx;
};

/// @param dy  a vector of the size of y
template <class X, class Dy>
EpilogueResult run_epilogue(DeviceRig& rig, DeviceOps& ops, const ImageShape& image, int batch,
                            const Epilogue& epilogue, const StepState& now, const X& from, const Dy& dy) {
  const auto x = rig.upload(from);
  const auto gradient = rig.upload(dy);
  const auto state = rig.upload(std::vector<StepState>{now});
  const auto y = rig.poisoned<float>(dy.size()), dx = rig.poisoned<float>(from.size());
  const auto mask = rig.poisoned<std::uint8_t>(dy.size());
  ops.epilogue_forward(rig.stream(), image, batch, x.data(), epilogue, state.data(), y.data(), mask.data());
  const EpilogueBackward expand = {image.channels, image.height,       image.width,
                                   epilogue.pool,  epilogue.factors(), mask.data()};
  ops.epilogue_backward(rig.stream(), expand, batch, gradient.data(), dx.data());
  return {rig.download(y), rig.download(mask), rig.download(dx)};
}

}  // namespace lockstep::test
