// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A ring of samples. Each step's are there when they are awaited and as long as they are in use, whatever
/// comes after them; and a disk that fails or hangs ends the wait.
#include "trainer/device/device_data.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/held_device.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/device/device_loss.hpp"
#include "trainer/setup/job_setup.hpp"

namespace lockstep::device_data_test {
namespace {

constexpr int kSamples = 23, kColumns = 4;
constexpr std::int64_t kRingSteps = 3;
constexpr ImageShape kShape = {1, 2, 2};

/// Every number of a sample is its own.
class CountingStore final : public SampleStore {
 public:
  explicit CountingStore(std::size_t sample_bytes = 4) : bytes_(sample_bytes) {}

  std::atomic<std::int64_t> broken = -1;  ///< a sample that cannot be read
  std::atomic<bool> hangs = false;

  std::int64_t size() const override { return kSamples; }
  const PixelSums& sums() const override { return sums_; }
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override {
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] == broken) throw IoError("the disk of sample " + std::to_string(broken));
      std::ranges::fill(to.subspan(i * bytes_, bytes_), static_cast<std::uint8_t>(samples[i]));
    }
  }
  void prefetch(std::vector<std::int64_t> /*samples*/) const override {}

 private:
  std::size_t bytes_;
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

TEST_F(SampleRingTest, OthersStayAsLongAsTheyAreInUse) {
  SampleRing ring(*device_, set_, {.columns = kColumns, .steps = kRingSteps, .spare_columns = 1},
                  evaluated_rows(0, kSamples, kColumns));
  LateStream late(device_->make_stream());
  std::array<std::uint8_t, 2> found{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::array others{static_cast<std::int32_t>(20 + i)};
    const StreamedRows rows = ring.load_now(late, others);
    late.copy_to_host(&found[i], ring.data() + 4 * rows.first, 1);
  }
  late.synchronize();
  EXPECT_EQ(found, (std::array<std::uint8_t, 2>{20, 21}));
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
        message = message_of<IoError>([&] { ring->await(comm, *stream_, 1); });
        store_->hangs = false;
      },
      std::chrono::duration<double>(0.3));
  EXPECT_TRUE(
      message.starts_with("counted train: no samples came for 0.27 s; check the disk, or the network "
                          "that it is on, or raise "))
      << message;
}

TEST_F(SampleRingTest, BeginsAnywhereAndKnowsItsEnd) {
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto ring = make_ring();
    EXPECT_THROW(ring->await(comm, *stream_, 1), InternalError) << "nothing has begun";
    ring->begin(0);
    ring->await(comm, *stream_, kRingSteps);
    EXPECT_THROW(ring->await(comm, *stream_, kRingSteps + 1), InternalError) << "more than it holds";
    ring->begin(5);  // beyond what has come
    ring->await(comm, *stream_, 6);
    EXPECT_EQ(samples_of(*ring, 5)[2], kSamples - 1);
    EXPECT_THROW(ring->await(comm, *stream_, 7), InternalError) << "behind the last one";
    ring->begin(0);
    ring->await(comm, *stream_, 1);
    EXPECT_EQ(samples_of(*ring, 0), expected(0));
  });
}

using RowNumbers = std::array<std::int64_t, 4>;  // first, partners, step_rows, steps

RowNumbers numbers(const StreamedRows& rows) {
  return {rows.first, rows.partners, rows.step_rows, rows.steps};
}

TEST_F(SampleRingTest, PartnersLieBehindTheSamplesOfTheirStepAndSpareRowsBehindAll) {
  SampleRing ring(*device_, set_,
                  {.columns = kColumns, .has_pairs = true, .steps = kRingSteps, .spare_columns = 2},
                  evaluated_rows(0, kSamples, kColumns));
  EXPECT_EQ(ring.sizes().all_rows(), 3 * 8 + 4);
  EXPECT_EQ(numbers(ring.rows_by_state(3)), (RowNumbers{3, 4, 8, 3}));
  EXPECT_EQ(numbers(ring.rows_of_step(4, 1)), (RowNumbers{1 * 8 + 1, 4, 0, 1}));
  EXPECT_EQ(numbers(ring.load_now(*stream_, std::vector<std::int32_t>(4))), (RowNumbers{3 * 8, 2, 0, 1}));
  EXPECT_THROW(ring.load_now(*stream_, std::vector<std::int32_t>(5)), InternalError);
}

TEST_F(SampleRingTest, HasColumnsAndAtLeastTwoSteps) {
  for (const RingSizes& sizes : {RingSizes{.columns = 0, .steps = 2}, RingSizes{.columns = 1, .steps = 1}})
    EXPECT_THROW(SampleRing(*device_, set_, sizes, evaluated_rows(0, 1, 1)), InternalError);
}

TEST(RingStepsTest, AreAsManyAs128MiBHoldFromTwoTo32) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  EXPECT_EQ(training_ring_steps(0), 32);
  EXPECT_EQ(training_ring_steps(4 * kMebibyte), 32);
  EXPECT_EQ(training_ring_steps(4 * kMebibyte + 1), 31);
  EXPECT_EQ(training_ring_steps(42 * kMebibyte), 3);
  EXPECT_EQ(training_ring_steps(1000 * kMebibyte), 2);
}

TEST(RingStepsTest, BatchesOfEvaluationsHave32MiBAtMost) {
  EXPECT_EQ(streamed_at_once(1000, 784), 1000);
  EXPECT_EQ(streamed_at_once(1000, 335'544), 100);
  EXPECT_EQ(streamed_at_once(1000, 335'545), 99);
  EXPECT_EQ(streamed_at_once(1000, std::uint64_t{1} << 30), 1);
  EXPECT_EQ(streamed_at_once(0, 784), 1) << "of an empty set";
  EXPECT_EQ(streamed_at_once(1000, 0), 1000);
}

// Rows of samples, by the number of a step.

using Rows = std::vector<std::int32_t>;

TEST(RowsOfStepsTest, OfAnEvaluationAreNeighboursUpToTheEndOfTheShare) {
  const auto rows = evaluated_rows(3, 10, 4);
  EXPECT_EQ(rows(0), (Rows{3, 4, 5, 6}));
  EXPECT_EQ(rows(1), (Rows{7, 8, 9}));
  EXPECT_EQ(rows(2), std::nullopt);
  EXPECT_EQ(evaluated_rows(3, 11, 4)(2), std::nullopt) << "the last batch is full";
}

TEST(RowsOfStepsTest, PartnersComeBehindAllColumns) {
  const Rows order{5, 3, 1, 0};
  EXPECT_EQ(rows_of_places(SampleMixer(), 2, order, 1, 2, 4), (Rows{3, 1}));
  const SampleMixer mixer({{.kind = AugmentKind::kMixup, .values = {{{1, 1}, {1, 1}}}}}, kShape, 7);
  const std::vector<SampleMix> mixes = mixer.draw(2, order, 1, 2);
  ASSERT_EQ(mixes.size(), 2U);
  Rows expected{3, 1, 1, 1};
  for (std::size_t i = 0; i < 2; ++i)
    expected.push_back(mixes[i].is_mixed() ? mixes[i].partner : order[1 + i]);
  EXPECT_EQ(rows_of_places(mixer, 2, order, 1, 2, 4), expected);
  EXPECT_EQ(rows_of_places(mixer, 2, order, 1, 0, 4), Rows());
}

/// Three grains a step, in an epoch's last one two: the second of two ranks has two, and then one.
TEST(RowsOfStepsTest, OfTrainingAreTheRanksShareEpochAfterEpoch) {
  const DistributedSampler::Options options{
      .samples = 10, .global_batch = 6, .grain = 2, .seed = 3, .rank = 1, .world_size = 2};
  DistributedSampler sampler(options);
  const auto rows = training_rows(sampler, SampleMixer(), 4);
  for (std::int64_t step = 0; step < 4; ++step) {
    sampler.set_epoch(step / 2);
    const auto share = step % 2 == 0 ? sampler.order().subspan(2, 4) : sampler.order().subspan(8, 2);
    EXPECT_EQ(rows(step), Rows(share.begin(), share.end())) << step;
  }
  const DistributedSampler idle(
      {.samples = 8, .global_batch = 6, .grain = 2, .seed = 3, .rank = 0, .world_size = 3});
  EXPECT_EQ(training_rows(idle, SampleMixer(), 2)(1), Rows()) << "no grain of the last batch";
}

// A set as kernels see it.

class DeviceDataTest : public SampleRingTest {
 protected:
  template <typename T>
  std::vector<T> on_device(const T* memory, std::size_t size) {
    return download(*stream_, memory, size);
  }
};

TEST_F(DeviceDataTest, ImagesOfSeveralChannelsHaveScalesOnTheDevice) {
  Dataset set;
  set.shape = {3, 1, 2};
  set.labels = {4, 5};
  set.images = AlignedBuffer<std::uint8_t>(12);
  std::iota(set.images.span().begin(), set.images.span().end(), std::uint8_t{1});
  set.scales = {{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(row_bytes_of(set), 6U);
  DeviceData data(*device_, *stream_, set);
  const DeviceDataset& view = data.view();
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.ring(), nullptr);
  EXPECT_EQ(on_device(view.images, 12), (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(view.features_fp32, nullptr);
  EXPECT_EQ(on_device(view.labels, 2), (std::vector<std::int32_t>{4, 5}));
  EXPECT_EQ(view.features, 6);
  EXPECT_EQ(view.channels, 3);
  EXPECT_EQ(on_device(view.channel_scale, 3), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(on_device(view.channel_shift, 3), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(view.augment, nullptr);
  const AugmentPlan plan{};
  EXPECT_NE(DeviceData(*device_, *stream_, set, &plan).view().augment, nullptr);
}

TEST_F(DeviceDataTest, AnImageOfOneChannelIsScaledByTheViewItself) {
  set_.scales = {{2}, {3}};
  const DeviceData data(*device_, *stream_, set_);
  const DeviceDataset& view = data.view();
  EXPECT_EQ(std::pair(view.scale, view.shift), std::pair(2.0F, 3.0F));
  EXPECT_EQ(view.channels, 1);
  EXPECT_EQ(view.channel_scale, nullptr);
  EXPECT_EQ(view.channel_shift, nullptr);
  const std::vector<std::uint8_t> images = on_device(view.images, std::size_t{4} * kSamples);
  for (std::size_t i = 0; i < images.size(); ++i) EXPECT_EQ(images[i], i / 4) << "from disk";
}

/// A part of 64 MiB holds two of the three samples.
TEST_F(DeviceDataTest, ASetOnDiskComesPartByPart) {
  constexpr std::size_t kSampleBytes = std::size_t{22} << 20;
  set_.shape = {22, 1024, 1024};
  set_.labels.resize(3);
  set_.store = std::make_shared<CountingStore>(kSampleBytes);
  const DeviceData data(*device_, *stream_, set_);
  for (std::size_t sample = 0; sample < 3; ++sample)
    for (const std::size_t byte : {std::size_t{0}, kSampleBytes - 1})
      EXPECT_EQ(on_device(data.view().images + sample * kSampleBytes + byte, 1).front(), sample);
}

TEST_F(DeviceDataTest, FeaturesAreAsTheyAre) {
  Dataset set;
  set.shape = {3, 1, 1};
  set.labels = {1};
  set.features = AlignedBuffer<float>(3);
  std::iota(set.features.span().begin(), set.features.span().end(), 7.0F);
  EXPECT_EQ(row_bytes_of(set), 12U);
  const DeviceData data(*device_, *stream_, set);
  EXPECT_EQ(data.view().images, nullptr);
  EXPECT_EQ(on_device(data.view().features_fp32, 3), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(std::pair(data.view().scale, data.view().shift), std::pair(1.0F, 0.0F));
}

TEST_F(DeviceDataTest, ALossHasItsWeightsAndSetsOfLabelsOnTheDevice) {
  const std::vector<float> weights{1, 2, 3};
  Dataset set;
  set.classes = 3;
  set.label_sets = {1, 0, 1, 0, 1, 0};
  const DeviceLossRule rule(*device_, *stream_,
                            {.kind = LossKind::kBinaryCrossEntropy, .class_weights = weights.data()}, set);
  EXPECT_NE(rule.rule().class_weights, weights.data());
  EXPECT_EQ(on_device(rule.rule().class_weights, 3), weights);
  EXPECT_EQ(on_device(rule.rule().label_sets, 6), set.label_sets);
  EXPECT_EQ(rule.of_evaluation().kind, LossKind::kBinaryCrossEntropy);
  EXPECT_EQ(rule.of_evaluation().label_sets, rule.rule().label_sets);
  EXPECT_EQ(rule.of_evaluation().class_weights, nullptr);
  const DeviceLossRule plain(*device_, *stream_, {}, set_);
  EXPECT_EQ(plain.rule().class_weights, nullptr);
  EXPECT_EQ(plain.rule().label_sets, nullptr);
}

TEST_F(DeviceDataTest, MixesHaveRoomForAnOrderAndABatchOrTwo) {
  const SampleMixer mixer({{.kind = AugmentKind::kMixup, .values = {{{1, 1}, {1, 1}}}}}, kShape, 7);
  DeviceMixes mixes(*device_, mixer, 4, 2), with_next(*device_, mixer, 4, 2, true);
  std::vector<SampleMix> order(5);
  for (std::size_t i = 0; i < order.size(); ++i) order[i].partner = static_cast<std::int32_t>(i + 7);
  mixes.queue(*stream_, std::span(order).first(4));
  const std::vector<SampleMix> there = on_device(mixes.mixes(), 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(there[i].partner, order[i].partner);
  EXPECT_THROW(mixes.queue(*stream_, order), InternalError);
  const std::array labels = {MixedLabel{1, 0.5F}, MixedLabel{2, 0.25F}, MixedLabel{3, 0.125F}};
  mixes.queue_labels(*stream_, labels.data(), 2);
  mixes.queue_labels(*stream_, nullptr, 3);
  const std::vector<MixedLabel> second = on_device<MixedLabel>(mixes.second_labels(), 2);
  EXPECT_EQ(std::pair(second[0].label, second[1].share), std::pair(1, 0.25F));
  EXPECT_THROW(mixes.queue_labels(*stream_, labels.data(), 3), InternalError);
  EXPECT_EQ(mixes.next_second_labels(), nullptr);
  const std::pair before(with_next.second_labels(), with_next.next_second_labels());
  EXPECT_NE(before.second, nullptr);
  with_next.take_next();
  EXPECT_EQ(std::pair(with_next.next_second_labels(), with_next.second_labels()), before);
  DeviceMixes none(*device_, SampleMixer(), 4, 2, true);
  EXPECT_EQ(none.mixes(), nullptr);
  EXPECT_EQ(none.second_labels(), nullptr);
  EXPECT_EQ(none.next_second_labels(), nullptr);
  EXPECT_NO_THROW(none.queue(*stream_, {}));
}

TEST_F(DeviceDataTest, AStreamedSetHasItsLabelsAndARing) {
  DeviceData data(
      *device_, *stream_, set_, nullptr,
      Streaming{{.columns = kColumns, .steps = kRingSteps}, evaluated_rows(0, kSamples, kColumns)});
  ASSERT_NE(data.ring(), nullptr);
  EXPECT_EQ(data.view().images, data.ring()->data());
  EXPECT_EQ(data.size(), kSamples);
}

}  // namespace
}  // namespace lockstep::device_data_test
