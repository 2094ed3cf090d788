// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batches taken out of a data set on a device, bit for bit against the definition.
#include "kernels/cpu/ops.hpp"
#include "kernels/mix.hpp"
#include "kernels/numerics/augment.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::gather_test {
namespace {

struct GatherCase {
  int batch, features, samples;
  std::int64_t step, stride, first;
  bool shuffled;
  int channels = 1;
  const AugmentPlan* augment = nullptr;
  std::vector<SampleMix> mixes = {};  ///< by position in the order
};

const GatherCase kCases[] = {
    {1, 1, 1, 0, 1, 0, false},         {1, 35, 9, 3, 2, 1, true},      {17, 35, 40, 1, 20, 2, true},
    {100, 35, 100, 0, 100, 0, true},   {64, 784, 200, 2, 64, 0, true}, {3, 784, 7, 0, 3, 0, false},
    {16, 32, 50, 1, 16, 16, true},     {32, 33, 64, 0, 32, 32, true},  {33, 31, 80, 1, 40, 7, true},
    {31, 64, 80, 0, 31, 5, false},     {5, 3, 30, 4, 5, 0, true},      {96, 7, 200, 1, 100, 4, true},
    {65, 130, 70, 0, 65, 5, true},     {2, 100, 10, 4, 2, 0, true},    {40, 36, 41, 0, 40, 1, false},
    {128, 12, 300, 1, 128, 0, true},   {7, 1, 70, 9, 7, 0, true},      {12, 4, 64, 2, 20, 8, true},
    {1, 784, 3, 2, 1, 0, true},        {50, 49, 99, 0, 50, 49, true},  {64, 20, 640, 9, 64, 0, true},
    {64, 3072, 70, 0, 64, 0, true, 3}, {5, 75, 30, 4, 5, 0, true, 3},  {33, 6, 40, 0, 33, 0, false, 6},
    {20, 84, 64, 1, 20, 8, true, 7},
};

std::string describe(const GatherCase& c) {
  return fmt::format("batch {}, features {}, samples {}, step {}, stride {}, first {}, shuffled {}", c.batch,
                     c.features, c.samples, c.step, c.stride, c.first, c.shuffled);
}

constexpr std::int64_t kEpoch = 3;
constexpr float kScale = 1.0F / (255.0F * 0.3081F), kShift = -0.1307F / 0.3081F;

class DeviceGatherTest : public testing::Test {
 protected:
  /// x and behind it the labels, as floats. @param ahead  so many steps before the case's
  template <typename T>
  std::vector<float> gather(const GatherCase& c, const std::vector<T>& set, std::int64_t ahead = 0,
                            const StreamedRows& rows = {}) {
    const auto values = rig_.upload(set);
    const auto labels = rig_.upload(labels_of(c));
    const auto order = rig_.upload(order_of(c));
    const auto state = rig_.upload(std::vector<StepState>{state_at(c.step - ahead)});
    DeviceDataset data;
    if constexpr (std::is_same_v<T, float>)
      data.features_fp32 = values.data();
    else
      data.images = values.data();
    data.labels = labels.data();
    data.features = c.features;
    data.scale = kScale;
    data.shift = kShift;
    data.channels = c.channels;
    const auto plan =
        rig_.upload(std::vector<AugmentPlan>{c.augment == nullptr ? AugmentPlan() : *c.augment});
    data.augment = c.augment == nullptr ? nullptr : plan.data();
    std::vector<float> numbers;
    for (const auto number : {scale_of, shift_of})
      for (int channel = 0; channel < c.channels; ++channel) numbers.push_back(number(channel));
    const auto scales = rig_.upload(numbers);
    data.channel_scale = scales.data();
    data.channel_shift = scales.data() + c.channels;
    const auto x = rig_.poisoned<float>(static_cast<std::size_t>(c.features * c.batch));
    const auto batch_labels = rig_.poisoned<std::int32_t>(static_cast<std::size_t>(c.batch));
    const auto mixes = rig_.upload(c.mixes.empty() ? std::vector<SampleMix>(1) : c.mixes);
    const auto second = rig_.upload(std::vector<MixedLabel>(static_cast<std::size_t>(c.batch), {-1, -1}));
    const SampleSelection selection = {c.shuffled ? order.data() : nullptr,
                                       c.step == 0 ? nullptr : state.data(),
                                       c.stride,
                                       c.first,
                                       c.mixes.empty() ? nullptr : mixes.data(),
                                       second.data(),
                                       rows,
                                       ahead};
    rig_.ops().gather(rig_.stream(), c.batch, data, selection, x.data(), batch_labels.data());
    std::vector<float> all = rig_.download(x);
    for (const std::int32_t label : rig_.download(batch_labels)) all.push_back(static_cast<float>(label));
    if (c.mixes.empty()) return all;
    for (const MixedLabel& label : rig_.download(second))
      all.insert(all.end(), {static_cast<float>(label.label), label.share});
    return all;
  }

  static std::vector<std::uint8_t> random_images(const GatherCase& c) {
    std::vector<std::uint8_t> images(static_cast<std::size_t>(c.samples * c.features));
    std::mt19937 engine(1);
    for (auto& byte : images) byte = static_cast<std::uint8_t>(engine());
    return images;
  }
  static std::vector<std::uint8_t> augmented_by_cpu(const GatherCase& c,
                                                    const std::vector<std::uint8_t>& images) {
    std::vector<std::uint8_t> augmented(images.size());
    for (int sample = 0; sample < c.samples; ++sample)
      cpu::augment_image(*c.augment, kEpoch, static_cast<std::uint32_t>(sample),
                         images.data() + sample * c.features, augmented.data() + sample * c.features);
    return augmented;
  }
  /// One fused multiply-add.
  static float normalised(std::uint8_t byte, int channel) {
    return std::fma(static_cast<float>(byte), scale_of(channel), shift_of(channel));
  }

  template <typename T, typename Value>
  static std::vector<float> expected(const GatherCase& c, const std::vector<T>& set, const Value& value) {
    std::vector<float> all;
    for (int f = 0; f < c.features; ++f)
      for (int n = 0; n < c.batch; ++n)
        all.push_back(value(set[static_cast<std::size_t>(sample_at(c, n) * c.features + f)],
                            f / (c.features / c.channels)));
    for (int n = 0; n < c.batch; ++n)
      all.push_back(static_cast<float>(labels_of(c)[static_cast<std::size_t>(sample_at(c, n))]));
    return all;
  }

  static float scale_of(int channel) { return kScale + 0.001F * static_cast<float>(channel); }
  static float shift_of(int channel) { return kShift - 0.3F * static_cast<float>(channel); }

  static std::vector<std::int32_t> order_of(const GatherCase& c) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(c.samples));
    std::iota(order.begin(), order.end(), 0);
    if (c.shuffled) std::shuffle(order.begin(), order.end(), std::mt19937(5));
    return order;
  }
  static int sample_at(const GatherCase& c, int n) {
    return order_of(c)[static_cast<std::size_t>(c.step * c.stride + c.first + n)];
  }
  static std::vector<std::int32_t> labels_of(const GatherCase& c) {
    std::vector<std::int32_t> labels;
    for (int i = 0; i < c.samples; ++i) labels.push_back(i * 7 % 10);
    return labels;
  }
  static StepState state_at(std::int64_t step) {
    StepState state;
    state.epoch = kEpoch;
    state.step_in_epoch = step;
    state.step = static_cast<std::uint32_t>(990 + step);
    return state;
  }

  DeviceRig rig_;
};

TEST_F(DeviceGatherTest, ImagesAreNormalisedByOneFusedMultiplyAdd) {
  for (const GatherCase& c : kCases) {
    SCOPED_TRACE(describe(c));
    const std::vector<std::uint8_t> images = random_images(c);
    const auto wanted = expected(c, images, normalised);
    EXPECT_EQ(same_in_every_order([&] { return gather(c, images); }), wanted);
    if (c.step == 0) continue;
    EXPECT_EQ(gather(c, images, c.step), wanted) << "ahead of the step";
  }
}

/// A ring of three steps, each with 20 rows, of which a batch has those from the third on.
TEST_F(DeviceGatherTest, RowsOfARingAreThoseOfTheStepAlsoAheadOfIt) {
  const GatherCase c = {17, 35, 60, 2, 20, 0, false};
  const std::vector<std::uint8_t> images = random_images(c);
  GatherCase of_rows = c;
  of_rows.step = 0;
  of_rows.first = state_at(c.step).step % 3 * 20 + 2;
  const std::vector<float> wanted = gather(of_rows, images);
  const auto pixels = static_cast<std::ptrdiff_t>(c.features * c.batch);
  for (const std::int64_t ahead : {0, 1, 2}) {
    const std::vector<float> x = gather(c, images, ahead, {.first = 2, .step_rows = 20, .steps = 3});
    EXPECT_TRUE(std::equal(x.begin(), x.begin() + pixels, wanted.begin())) << ahead << " ahead";
  }
}

/// All kinds of changes, for images of 3 channels of 9 x 13 pixels. The order ends with the batch, whose last tile is
/// not full: nothing after it may be read.
TEST_F(DeviceGatherTest, AugmentedImagesHaveTheBitsOfTheCpu) {
  constexpr std::int32_t kOne = 1 << 24;
  AugmentPlan plan = {
      .seed = 11, .channels = 3, .height = 9, .width = 13, .count = 9, .mixes_channels = 1, .steps = {}};
  const AugmentStep steps[] = {{AugmentKind::kCrop, {2}},
                               {AugmentKind::kResizedCrop, {kOne / 4, kOne, -kOne / 2, kOne / 2}},
                               {AugmentKind::kFlip, {1 << 29, 1 << 29}},
                               {AugmentKind::kRotate, {1 << 26}},
                               {AugmentKind::kShift, {2, 1}},
                               {AugmentKind::kScale, {kOne / 2, 2 * kOne}},
                               {AugmentKind::kJitter, {1 << 15, 1 << 17, 1 << 15, 1 << 17, 1 << 15, 1 << 17}},
                               {AugmentKind::kErase, {1 << 29, kOne / 50, kOne / 3, -kOne, kOne}},
                               {AugmentKind::kCutout, {3}}};
  std::ranges::copy(steps, plan.steps);
  AugmentPlan cheap = {.seed = 12, .channels = 3, .height = 9, .width = 13, .count = 2, .steps = {}};
  cheap.steps[0] = steps[0];
  cheap.steps[1] = steps[2];
  for (const AugmentPlan* augment : {&plan, &cheap}) {
    const GatherCase c = {37, 351, 80, 1, 40, 3, true, 3, augment};
    const std::vector<std::uint8_t> images = random_images(c);
    EXPECT_EQ(same_in_every_order([&] { return gather(c, images); }),
              expected(c, augmented_by_cpu(c, images), normalised));
  }
}

/// Blends, boxes, and samples that stay alone.
std::vector<SampleMix> mixes_of(const GatherCase& c, const AugmentPlan& plan) {
  std::vector<SampleMix> mixes;
  for (int i = 0; i < c.samples; ++i) {
    SampleMix mix = {.partner = 7 * i % c.samples, .share = 1700 * i % kShareOne};
    mix.pixel_share = i % 3 == 0 ? 0 : mix.share;
    mix.left = static_cast<std::int16_t>(i % 3 == 0 ? i % 4 : 0);
    mix.top = static_cast<std::int16_t>(i % 3 == 0 ? i % 5 : 0);
    mix.right = static_cast<std::int16_t>(plan.width - mix.left);
    mix.bottom = static_cast<std::int16_t>(i % 5 == 1 ? mix.top : plan.height);
    mixes.push_back(mix);
  }
  return mixes;
}

TEST_F(DeviceGatherTest, MixedImagesHaveTheBitsOfTheCpu) {
  AugmentPlan plan = {.seed = 11, .channels = 3, .height = 9, .width = 13, .count = 1, .steps = {}};
  plan.steps[0] = {AugmentKind::kRotate, {1 << 26}};
  AugmentPlan nothing = plan;
  nothing.count = 0;
  for (const AugmentPlan* augment : {&plan, &nothing}) {
    GatherCase c = {37, 351, 80, 1, 40, 3, true, 3, augment};
    c.mixes = mixes_of(c, plan);
    const std::vector<std::uint8_t> images = random_images(c), augmented = augmented_by_cpu(c, images);
    std::vector<std::uint8_t> mixed = augmented;
    std::vector<LabelPair> labels;
    for (int n = 0; n < c.batch; ++n) {
      const int sample = sample_at(c, n);
      const SampleMix& mix = c.mixes[static_cast<std::size_t>(c.step * c.stride + c.first + n)];
      cpu::mix_images(*augment, mix, augmented.data() + mix.partner * 351, mixed.data() + sample * 351);
      labels.push_back(mixed_labels(mix, labels_of(c)[static_cast<std::size_t>(sample)],
                                    labels_of(c)[static_cast<std::size_t>(mix.partner)]));
    }
    auto wanted = expected(c, mixed, normalised);
    wanted.resize(wanted.size() - labels.size());
    for (const LabelPair& pair : labels) wanted.push_back(static_cast<float>(pair.first));
    for (const LabelPair& pair : labels)
      wanted.insert(wanted.end(), {static_cast<float>(pair.second.label), pair.second.share});
    EXPECT_EQ(same_in_every_order([&] { return gather(c, images); }), wanted);
  }
}

TEST_F(DeviceGatherTest, FeaturesAreCopied) {
  for (const GatherCase& c : kCases) {
    SCOPED_TRACE(describe(c));
    const auto features = random_floats(static_cast<std::size_t>(c.samples * c.features), 2);
    EXPECT_EQ(gather(c, features),
              expected(c, features, [](float feature, int /*channel*/) { return feature; }));
  }
}

}  // namespace
}  // namespace lockstep::test::gather_test
