// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rig of the tests of layers with weights. Their ops run on the device and on the CPU, and those that are fused with an
/// epilogue beside the two ops one after the other.
#pragma once

#include "tests/kernels/device/cpu_columns.hpp"
#include "tests/kernels/device/problems.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// Above every term of these tests.
inline constexpr float kNoLimit = 4e6F;

class LayerTest : public testing::Test {
 protected:
  /// Output of an op with an epilogue.
  struct Activated {
    std::vector<float> y;
    std::vector<std::uint8_t> mask;
  };

  template <class Shape>
  std::vector<float> forward(const OnDevice<Shape>& p, const Epilogue& epilogue = {}) {
    return run_forward(p, epilogue, false).y;
  }

  template <class Shape>
  std::vector<float> backward_data(const OnDevice<Shape>& p, const EpilogueBackward* expand = nullptr) {
    const auto size = expand == nullptr ? input_size(p.shape)
                                        : std::size_t{1} * expand->channels * expand->height * expand->width *
                                              p.shape.batch;
    const auto dx = rig_.poisoned<float>(size);
    OpsOf<Shape>::backward_data(rig_.ops(), rig_.stream(), p.shape, p.dy(), p.w(), expand, dx.data());
    return rig_.download(dx);
  }

  /// dw, db, refused.
  /// @param before  what the sums start as; empty: zeros
  template <class Shape>
  std::vector<std::int64_t> backward_weights(const OnDevice<Shape>& p, int grain, float limit = kNoLimit,
                                             const std::vector<std::int64_t>& before = {}) {
    const ExactSums sums(rig_, p.shape, limit, before);
    std::invoke(OpsOf<Shape>::kBackwardWeights, rig_.ops(), rig_.stream(), p.shape, grain, p.x(), p.dy(),
                sums.gradient);
    return sums.all();
  }

  /// The bits of the layer and the epilogue one after the other.
  template <class Shape>
  void expect_fused_epilogues(const Shape& shape, std::span<const Epilogue> epilogues) {
    const OnDevice<Shape> p(rig_, LayerProblem<Shape>(shape));
    const auto sums = rig_.upload(forward(p));
    for (const Epilogue& epilogue : epilogues) {
      SCOPED_TRACE(describe(shape) + ", epilogue " + std::to_string(&epilogue - epilogues.data()));
      const auto y = rig_.poisoned<float>(size_after(epilogue, output_image(shape), shape.batch));
      const auto mask = rig_.poisoned<std::uint8_t>(y.size());
      rig_.ops().epilogue_forward(rig_.stream(), output_image(shape), shape.batch, sums.data(), epilogue,
                                  state_.data(), y.data(), mask.data());
      const Activated fused = run_forward(p, epilogue, true);
      EXPECT_TRUE(same_bits(fused.y, rig_.download(y))) << "y";
      EXPECT_EQ(fused.mask, rig_.download(mask));
    }
  }

  /// The bits of the data gradient and the way back through the epilogue one after the other.
  /// @param expand  its mask is replaced by random ones
  template <class Shape>
  void expect_fused_expansion(const OnDevice<Shape>& p, EpilogueBackward expand) {
    SCOPED_TRACE(fmt::format("{}, expanded to {} x {}", describe(p.shape), expand.height, expand.width));
    const auto mask = rig_.upload(random_masks(input_size(p.shape), expand.pool, 7));
    expand.mask = mask.data();
    const auto run = [&] { return backward_data(p, &expand); };
    // Convolutions take the emulator long.
    const auto fused = std::is_same_v<Shape, LinearShape> ? same_in_every_order(run) : run();
    const auto plain = rig_.upload(backward_data(p));
    const auto expected = rig_.poisoned<float>(fused.size());
    rig_.ops().epilogue_backward(rig_.stream(), expand, p.shape.batch, plain.data(), expected.data());
    EXPECT_TRUE(same_bits(fused, rig_.download(expected)));
  }

  DeviceRig rig_;

 private:
  template <class Shape>
  Activated run_forward(const OnDevice<Shape>& p, const Epilogue& epilogue, bool with_mask) {
    const auto y = rig_.poisoned<float>(size_after(epilogue, output_image(p.shape), p.shape.batch));
    const auto mask = rig_.poisoned<std::uint8_t>(y.size());
    std::invoke(OpsOf<Shape>::kForward, rig_.ops(), rig_.stream(), p.shape, p.x(), p.w(), p.b(), epilogue,
                with_mask ? state_.data() : nullptr, y.data(), with_mask ? mask.data() : nullptr);
    return {rig_.download(y), rig_.download(mask)};
  }

  DeviceBuffer<StepState> state_ = rig_.upload(std::vector<StepState>{{.scalars = {}, .step = 4711}});
};

/// The CPU's ops with the same numbers.
template <class Shape>
class LayerOnCpu {
 public:
  explicit LayerOnCpu(const LayerProblem<Shape>& p)
      : p_(p), shape_(padded(p.shape)), w_(p.w.begin(), p.w.end()), b_(p.b.begin(), p.b.end()) {}

  AlignedBuffer<float> forward() const {
    auto y = cpu_room(p_.dy.size(), p_.shape.batch);
    const auto x = to_cpu(p_.x, p_.shape.batch);
    if constexpr (kIsConvolution)
      cpu::conv2d_forward(shape_, x.data(), w_.data(), b_.data(), y.data());
    else
      cpu::linear_forward(shape_, x.data(), w_.data(), b_.data(), y.data());
    return y;
  }

  /// @param bias  null: none; of convolutions
  AlignedBuffer<float> backward_data(const float* bias = nullptr) const {
    auto dx = cpu_room(p_.x.size(), p_.shape.batch);
    const auto dy = to_cpu(p_.dy, p_.shape.batch);
    if constexpr (kIsConvolution)
      cpu::conv2d_backward_data(shape_, dy.data(), w_.data(), bias, dx.data());
    else
      cpu::linear_backward_data(shape_, dy.data(), w_.data(), dx.data());
    return dx;
  }

  /// As LayerTest::backward_weights().
  std::vector<std::int64_t> backward_weights(int grain) const {
    const std::size_t size = w_.size() + b_.size();
    std::size_t terms = 1;
    if constexpr (kIsConvolution) terms = static_cast<std::size_t>(GradientSplit(p_.shape, grain).terms);
    std::vector<std::int64_t> sums(size + 1);
    std::vector<float> gradient(terms * size, NAN);
    for (int first = 0; first < p_.shape.batch; first += grain) {
      const LayerProblem<Shape> part = p_.columns(first, std::min(grain, p_.shape.batch - first));
      const auto x = to_cpu(part.x, part.shape.batch), dy = to_cpu(part.dy, part.shape.batch);
      float* const db = gradient.data() + w_.size();
      if constexpr (kIsConvolution)
        cpu::conv2d_backward_weights(padded(part.shape), GradientSplit(part.shape, grain), x.data(),
                                     dy.data(), {gradient.data(), db, size});
      else
        cpu::linear_backward_weights(padded(part.shape), x.data(), dy.data(), gradient.data(), db);
      for (std::size_t t = 0; t < terms; ++t)
        cpu::accumulate_exact(size, gradient.data() + t * size, {.limit = kNoLimit}, sums.data());
    }
    return sums;
  }

  const float* w() const { return w_.data(); }

 private:
  static constexpr bool kIsConvolution = std::is_same_v<Shape, Conv2dShape>;

  static Shape padded(Shape shape) {
    shape.batch = padded_columns(shape.batch);
    return shape;
  }

  const LayerProblem<Shape>& p_;
  Shape shape_;
  std::vector<float> w_, b_;
};

}  // namespace lockstep::test
