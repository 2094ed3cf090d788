// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets, losses and mixes of samples in device memory, as kernels see them.
#include "tests/trainer/training/sample_ring_fixture.hpp"
#include "trainer/device/device_loss.hpp"
#include "trainer/setup/job_setup.hpp"

namespace lockstep::device_data_test {
namespace {

using namespace sample_ring_test;

class DeviceDataTest : public SampleRingTest {
 protected:
  template <typename T>
  std::vector<T> on_device(const T* memory, std::size_t size) {
    return download(*stream_, memory, size);
  }

  LateStream late_{device_->make_stream()};
};

TEST_F(DeviceDataTest, ImagesOfSeveralChannelsHaveScalesOnTheDevice) {
  Dataset set;
  set.shape = {3, 1, 2};
  set.labels = {4, 5};
  set.images = AlignedBuffer<std::uint8_t>(12);
  std::iota(set.images.span().begin(), set.images.span().end(), std::uint8_t{1});
  set.scales = {{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(row_bytes_of(set), 6U);
  DeviceData data(*device_, late_, set);
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
  EXPECT_NE(DeviceData(*device_, late_, set, &plan).view().augment, nullptr);
}

TEST_F(DeviceDataTest, AnImageOfOneChannelIsScaledByTheViewItself) {
  set_.scales = {{2}, {3}};
  const DeviceData data(*device_, late_, set_);
  const DeviceDataset& view = data.view();
  EXPECT_EQ(std::pair(view.scale, view.shift), std::pair(2.0F, 3.0F));
  EXPECT_EQ(view.channels, 1);
  EXPECT_EQ(view.channel_scale, nullptr);
  EXPECT_EQ(view.channel_shift, nullptr);
  const std::vector<std::uint8_t> images = on_device(view.images, std::size_t{4} * kStoredSamples);
  for (std::size_t i = 0; i < images.size(); ++i) EXPECT_EQ(images[i], i / 4) << "from disk";
}

/// A part of 64 MiB holds two of the three samples.
TEST_F(DeviceDataTest, ASetOnDiskComesPartByPart) {
  constexpr std::size_t kSampleBytes = std::size_t{22} << 20;
  set_.shape = {22, 1024, 1024};
  set_.labels.resize(3);
  const auto store = std::make_shared<CountingStore>(kSampleBytes);
  set_.store = store;
  const DeviceData data(*device_, late_, set_);
  EXPECT_EQ(store->most_at_once, 2U);
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
  const DeviceData data(*device_, late_, set);
  EXPECT_EQ(data.view().images, nullptr);
  EXPECT_EQ(on_device(data.view().features_fp32, 3), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(std::pair(data.view().scale, data.view().shift), std::pair(1.0F, 0.0F));
}

TEST_F(DeviceDataTest, ALossHasItsWeightsAndSetsOfLabelsOnTheDevice) {
  const std::vector<float> weights{1, 2, 3};
  Dataset set;
  set.classes = 3;
  set.label_sets = {1, 0, 1, 0, 1, 0};
  const DeviceLossRule rule(*device_, late_,
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
      Streaming{{.columns = kColumns, .steps = kRingSteps}, evaluated_rows(0, kStoredSamples, kColumns)});
  ASSERT_NE(data.ring(), nullptr);
  EXPECT_EQ(data.view().images, data.ring()->data());
  EXPECT_EQ(data.size(), kStoredSamples);
}

}  // namespace
}  // namespace lockstep::device_data_test
