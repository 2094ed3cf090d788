// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A ring of samples. Each step's are there when they are awaited and as long as they are in use, whatever
/// comes after them; and a disk that fails or hangs ends the wait.
#include "trainer/device/device_data.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/setup/job_setup.hpp"

namespace lockstep::device_data_test {
namespace {

constexpr int kSamples = 23, kColumns = 4;
constexpr std::int64_t kRingSteps = 3;
constexpr ImageShape kShape = {1, 2, 2};

/// Every number of a sample is its own.
class CountingStore final : public SampleStore {
 public:
  std::atomic<std::int64_t> broken = -1;  ///< a sample that cannot be read
  std::atomic<bool> hangs = false;

  std::int64_t size() const override { return kSamples; }
  const PixelSums& sums() const override { return sums_; }
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override {
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] == broken) throw IoError("the disk of sample " + std::to_string(broken));
      std::ranges::fill(to.subspan(i * 4, 4), static_cast<std::uint8_t>(samples[i]));
    }
  }
  void prefetch(std::vector<std::int64_t> /*samples*/) const override {}

 private:
  PixelSums sums_;
};

class SampleRingTest : public ::testing::Test {
 protected:
  SampleRingTest() {
    set_.name = "counted train";
    set_.shape = kShape;
    set_.labels.resize(kSamples);
    set_.store = store_;
  }
  std::unique_ptr<SampleRing> make_ring() {
    return std::make_unique<SampleRing>(*device_, set_, RingSizes{.columns = kColumns, .steps = kRingSteps},
                                        evaluated_rows(0, kSamples, kColumns));
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

TEST_F(SampleRingTest, AStepsSamplesAreThereAndStayWhileItIsUnderWay) {
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto ring = make_ring();
    for (const std::int64_t first : {0, 0, 2}) {  // again from the start, and further on
      for (std::int64_t step = first; step < 5; ++step) {
        ring->begin(step);
        ring->await(comm, *stream_, step + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the ring fills up
        EXPECT_EQ(samples_of(*ring, step), expected(step));
      }
    }
  });
}

TEST_F(SampleRingTest, OthersLieBesideThoseOfSteps) {
  run_thread_ranks(1, [&](Communicator& comm) {
    SampleRing ring(*device_, set_, {.columns = kColumns, .steps = kRingSteps, .spare_columns = 2},
                    evaluated_rows(0, kSamples, kColumns));
    ring.begin(0);
    ring.await(comm, *stream_, kRingSteps);
    const std::vector<std::int32_t> others{22, 7};
    const StreamedRows rows = ring.load_now(*stream_, others);
    std::vector<std::uint8_t> bytes(8);
    stream_->copy_to_host(bytes.data(), ring.data() + 4 * rows.first, bytes.size());
    stream_->synchronize();
    EXPECT_EQ(bytes, (std::vector<std::uint8_t>{22, 22, 22, 22, 7, 7, 7, 7}));
    for (std::int64_t step = 0; step < kRingSteps; ++step) EXPECT_EQ(samples_of(ring, step), expected(step));
  });
}

TEST_F(SampleRingTest, AnErrorComesWithTheStepThatNeedsIt) {
  run_thread_ranks(1, [&](Communicator& comm) {
    store_->broken = 2 * kColumns + 1;
    const auto ring = make_ring();
    ring->begin(0);
    ring->await(comm, *stream_, 2);
    EXPECT_EQ(samples_of(*ring, 1), expected(1));
    EXPECT_THROW(ring->await(comm, *stream_, 3), IoError);
    store_->broken = -1;
    ring->begin(2);
    ring->await(comm, *stream_, 3);
    EXPECT_EQ(samples_of(*ring, 2), expected(2)) << "the disk is back";
  });
}

TEST_F(SampleRingTest, ADiskThatHangsIsNamedBeforeTheDeadline) {
  std::string message;
  run_thread_ranks(
      1,
      [&](Communicator& comm) {
        store_->hangs = true;
        const auto ring = make_ring();
        ring->begin(0);
        try {
          ring->await(comm, *stream_, 1);
        } catch (const IoError& error) {
          message = error.what();
        }
        store_->hangs = false;
      },
      std::chrono::duration<double>(0.3));
  EXPECT_NE(message.find("counted train: no samples came for"), message.npos) << message;
}

}  // namespace
}  // namespace lockstep::device_data_test
