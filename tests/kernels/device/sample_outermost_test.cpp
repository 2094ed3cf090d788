// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kernels that also serve vendor ops, whose tensors are [sample][channel][row][column]: the same numbers
/// as batch innermost, in another place. The emulator runs them without those libraries.
#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test::sample_outermost_test {
namespace {

/// [features, batch] → [batch, features].
template <typename T>
std::vector<T> transposed(const std::vector<T>& from, int batch) {
  const auto columns = static_cast<std::size_t>(batch);
  const std::size_t features = from.size() / columns;
  std::vector<T> to(from.size());
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t n = 0; n < columns; ++n) to[n * features + f] = from[f * columns + n];
  return to;
}

struct LayoutCase {
  ImageShape shape;
  int batch;
  Epilogue epilogue;
};

constexpr EpilogueStep kRelu = {}, kMax = {EpilogueKind::kMaxPool}, kAvg = {EpilogueKind::kAvgPool};
constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.5F};
constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.25F};

const LayoutCase kCases[] = {
    {{3, 5, 7}, 17, {{kMax, kRelu}, 2, 2, 11, 64}},
    {{5, 4, 4}, 100, {{kDropout2d, kMax, kRelu}, 3, 2, 11, 64}},
    {{50, 1, 1}, 17, {{kRelu, kDropout}, 2, 1, 11, 64}},
    {{6, 5, 7}, 1, {{kRelu, kAvg}, 2, 2, 11, 64}},
    {{3, 5, 7}, 4, {{kDropout, kMax, kDropout, kRelu}, 4, 2, 11, 0}},
    {{2, 5, 7}, 3, {{kDropout}, 1, 1, 11, 0}},
};

class SampleOutermostTest : public testing::Test {
 protected:
  struct Result {
    std::vector<float> y;
    std::vector<std::uint8_t> mask;
    std::vector<float> dx;
  };

  cudaStream_t stream() { return static_cast<cudaStream_t>(rig_.stream().native_handle()); }

  /// There and back; all tensors, given and returned, are batch innermost.
  Result run(const LayoutCase& c, bool batch_innermost) {
    const auto there = [&](auto tensor) { return batch_innermost ? tensor : transposed(tensor, c.batch); };
    const auto back = [&](auto tensor) {
      return batch_innermost ? tensor : transposed(tensor, static_cast<int>(tensor.size()) / c.batch);
    };
    const auto batch = static_cast<std::size_t>(c.batch);
    const auto features = static_cast<std::size_t>(c.shape.features());
    const std::size_t out_size =
        batch * static_cast<std::size_t>(c.shape.channels * c.epilogue.out(c.shape.height) *
                                         c.epilogue.out(c.shape.width));
    const auto x = rig_.upload(there(random_numbers(batch * features, 1)));
    const auto y = rig_.poisoned<float>(out_size);
    const auto mask = rig_.poisoned<std::uint8_t>(out_size);
    const auto state = rig_.upload(std::vector<StepState>(1));
    emulated::epilogue_forward(stream(), c.shape, c.batch, batch_innermost, x.data(), c.epilogue,
                               state.data(), y.data(), mask.data());
    const auto dy = rig_.upload(there(random_numbers(out_size, 2)));
    const auto dx = rig_.poisoned<float>(x.size());
    const EpilogueBackward expand = {c.shape.channels, c.shape.height,       c.shape.width,
                                     c.epilogue.pool,  c.epilogue.factors(), mask.data()};
    emulated::epilogue_backward(stream(), expand, c.batch, batch_innermost, dy.data(), dx.data());
    return {back(rig_.download(y)), back(rig_.download(mask)), back(rig_.download(dx))};
  }

  DeviceRig rig_;
};

TEST_F(SampleOutermostTest, EpilogueGivesTheSameBits) {
  for (const LayoutCase& c : kCases) {
    SCOPED_TRACE("batch " + std::to_string(c.batch) + ", channels " + std::to_string(c.shape.channels));
    const Result expected = run(c, true), actual = run(c, false);
    EXPECT_EQ(actual.y, expected.y);
    EXPECT_EQ(actual.mask, expected.mask);
    EXPECT_EQ(actual.dx, expected.dx);
  }
}

TEST_F(SampleOutermostTest, GatherGivesTheSameBits) {
  for (const auto& [batch, features] : {std::pair{1, 35}, {17, 784}, {100, 35}, {33, 64}, {5, 1}}) {
    SCOPED_TRACE("batch " + std::to_string(batch) + ", features " + std::to_string(features));
    const auto set = rig_.upload(random_numbers(static_cast<std::size_t>(batch * features), 3));
    const auto labels = rig_.zeroed<std::int32_t>(static_cast<std::size_t>(batch));
    DeviceDataset data;
    data.features_fp32 = set.data();
    data.labels = labels.data();
    data.features = features;
    const auto x = rig_.poisoned<float>(set.size());
    const auto taken = rig_.poisoned<std::int32_t>(labels.size());
    emulated::gather(stream(), batch, data, {}, {1, static_cast<std::size_t>(features)}, x.data(),
                     taken.data());
    EXPECT_EQ(rig_.download(x), rig_.download(set));
    EXPECT_EQ(rig_.download(taken), rig_.download(labels));
  }
}

}  // namespace
}  // namespace lockstep::test::sample_outermost_test
