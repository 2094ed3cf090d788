// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples that count, on a disk that fails or hangs; rings of them; and a stream that copies late.
#pragma once
#include "common/error.hpp"
#include "tests/support/held_device.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/device/device_data.hpp"

namespace lockstep::sample_ring_test {

inline constexpr int kStoredSamples = 23, kColumns = 4;
inline constexpr std::int64_t kRingSteps = 3;
inline constexpr ImageShape kShape = {1, 2, 2};

/// Every number of a sample is its own.
class CountingStore final : public SampleStore {
 public:
  explicit CountingStore(std::size_t sample_bytes = 4) : bytes_(sample_bytes) {}

  std::atomic<std::int64_t> broken = -1;  ///< a sample that cannot be read
  std::atomic<bool> hangs = false;
  mutable std::atomic<bool> is_asked = false;         ///< to read
  mutable std::atomic<std::size_t> most_at_once = 0;  ///< samples that were read
  mutable std::atomic<std::int64_t> last_read = -1;   ///< sample
  mutable std::vector<std::int64_t> prefetched;

  std::int64_t size() const override { return kStoredSamples; }
  const PixelSums& sums() const override { return sums_; }
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override {
    is_asked = true;
    most_at_once = std::max(most_at_once.load(), samples.size());
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] == broken) throw IoError("the disk of sample " + std::to_string(broken));
      std::ranges::fill(to.subspan(i * bytes_, bytes_), static_cast<std::uint8_t>(samples[i]));
      last_read = samples[i];
    }
  }
  void prefetch(std::vector<std::int64_t> samples) const override {
    prefetched.insert(prefetched.end(), samples.begin(), samples.end());
  }

 private:
  std::size_t bytes_;
  PixelSums sums_;
};

class SampleRingTest : public ::testing::Test {
 protected:
  SampleRingTest() {
    set_.name = "counted train";
    set_.shape = kShape;
    set_.labels.resize(kStoredSamples);
    set_.store = store_;
  }
  std::unique_ptr<SampleRing> make_ring() {
    return std::make_unique<SampleRing>(*device_, set_, RingSizes{.columns = kColumns, .steps = kRingSteps},
                                        evaluated_rows(0, kStoredSamples, kColumns));
  }
  /// The first number of each of its samples.
  std::vector<std::uint8_t> samples_of(const SampleRing& ring, std::int64_t step) {
    std::vector<std::uint8_t> bytes(kColumns * 4), samples;
    stream_->copy_to_host(bytes.data(), ring.data() + 4 * ring.rows_of_step(step).first, bytes.size());
    stream_->synchronize();
    for (std::size_t i = 0; i < bytes.size(); i += 4) samples.push_back(bytes[i]);
    return samples;
  }
  static std::vector<std::uint8_t> expected(std::int64_t step) {
    std::vector<std::uint8_t> samples(kColumns);
    std::iota(samples.begin(), samples.end(), static_cast<std::uint8_t>(step * kColumns));
    return samples;
  }

  std::shared_ptr<CountingStore> store_ = std::make_shared<CountingStore>();
  Dataset set_;
  std::unique_ptr<Device> device_ = emulated::platform().make_device(0);
  std::unique_ptr<Stream> stream_ = device_->make_stream();
};

/// Copies are done when it is waited for.
class LateStream final : public testing::HeldStream {
 public:
  using HeldStream::HeldStream;
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    copies_.emplace_back([=, this] { HeldStream::copy_to_device(to, from, bytes); });
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override {
    copies_.emplace_back([=, this] { HeldStream::copy_to_host(to, from, bytes); });
  }
  void synchronize() override {
    for (const auto& copy : std::exchange(copies_, {})) copy();
    HeldStream::synchronize();
  }

 private:
  std::vector<std::function<void()>> copies_;
};

}  // namespace lockstep::sample_ring_test
