// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums in double, a vector of lanes at a time through a run that fits the cache. The rest is number by number.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/batch_norm.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/column_maxima_inl.hpp"
#include "kernels/cpu/multiply_add_inl.hpp"
#include "kernels/cpu/sign_bits_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

using Doubles = hn::CappedTag<double, 8>;
using Floats = hn::Rebind<float, Doubles>;
using Samples = hn::CappedTag<float, kBatchNormLanes>;

/// The groups of one channel, one after the other. Those at the end of a pixel may be samples in part.
struct Groups {
  int of_pixel;  ///< groups
  int in_last;   ///< samples in the last group of a pixel
  int count;     ///< groups of the channel

  explicit Groups(const BatchNormShape& shape)
      : of_pixel(shape.batch / kBatchNormLanes),
        in_last(shape.samples - (of_pixel - 1) * kBatchNormLanes),
        count(of_pixel * shape.pixels) {}
  bool all_whole() const { return in_last == kBatchNormLanes; }
  int samples_of(int group) const { return (group + 1) % of_pixel == 0 ? in_last : kBatchNormLanes; }
};

/// Sums of two products of what `terms` makes of numbers [at, at + Lanes) of the channel. It looks at all numbers
/// through `keep`, which makes zeros of those after the samples.
template <class Terms>
HWY_INLINE void add_run(const Groups& groups, int first, int last, const Terms& terms, std::int64_t* sums) {
  const Doubles d;
  HWY_ALIGN double lanes[kBatchNormSums][kBatchNormLanes];
  for (std::size_t lane = 0; lane < kBatchNormLanes; lane += hn::Lanes(d)) {
    hn::Vec<Doubles> a[kBatchNormChains], b[kBatchNormChains];
    for (int c = 0; c < kBatchNormChains; ++c) a[c] = b[c] = hn::Zero(d);
    const auto add = [&](int chain, int group, const auto& keep) HWY_ATTR {
      terms(std::size_t{1} * group * kBatchNormLanes + lane, keep, a[chain], b[chain]);
    };
    const auto keep_all = [](hn::Vec<Floats> numbers) HWY_ATTR { return numbers; };
    int group = first;
    if (groups.all_whole()) {
      for (; group + kBatchNormChains <= last; group += kBatchNormChains) {
        add(0, group, keep_all);
        add(1, group + 1, keep_all);
        add(2, group + 2, keep_all);
        add(3, group + 3, keep_all);
      }
    }
    for (; group < last; ++group) {
      const int samples = groups.samples_of(group) - static_cast<int>(lane);
      const auto real = hn::FirstN(Floats(), static_cast<std::size_t>(std::max(samples, 0)));
      add((group - first) % kBatchNormChains, group,
          [&](hn::Vec<Floats> numbers) HWY_ATTR { return hn::IfThenElseZero(real, numbers); });
    }
    hn::StoreU(hn::Add(hn::Add(a[0], a[1]), hn::Add(a[2], a[3])), d, lanes[0] + lane);
    hn::StoreU(hn::Add(hn::Add(b[0], b[1]), hn::Add(b[2], b[3])), d, lanes[1] + lane);
  }
  for (int s = 0; s < kBatchNormSums; ++s) {
    for (int half = kBatchNormLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[s][l] += lanes[s][l + half];
    }
    add_to_long_sum(lanes[s][0], sums + s * kLongSumWords);
  }
}

template <class Terms>
HWY_INLINE void add_channel(const Groups& groups, const Terms& terms, std::int64_t* sums) {
  for (int first = 0; first < groups.count; first += kBatchNormRun)
    add_run(groups, first, std::min(first + kBatchNormRun, groups.count), terms, sums);
}

/// x and x x.
struct SquareTerms {
  const float* x;

  template <class Keep>
  HWY_INLINE void operator()(std::size_t at, const Keep& keep, hn::Vec<Doubles>& sum,
                             hn::Vec<Doubles>& square) const {
    const auto wide = hn::PromoteTo(Doubles(), keep(hn::LoadU(Floats(), x + at)));
    sum = hn::Add(sum, wide);
    square = hn::MulAdd(wide, wide, square);
  }
};

/// dy after the steps, if there are any, which is stored; and dy xhat.
template <bool kAdds, bool kSelects>
struct NormGradientTerms {
  const float* x;
  float* dy;
  const float* added;
  const std::uint8_t* positive;
  float mean, rstd;

  template <class Keep>
  HWY_INLINE void operator()(std::size_t at, const Keep& keep, hn::Vec<Doubles>& sum,
                             hn::Vec<Doubles>& product) const {
    const Floats d;
    const auto number = keep(hn::LoadU(d, x + at)), gradient = keep(stepped(at));
    const auto xhat = hn::Mul(hn::Sub(number, hn::Set(d, mean)), hn::Set(d, rstd));
    const auto wide = hn::PromoteTo(Doubles(), gradient);
    sum = hn::Add(sum, wide);
    product = hn::MulAdd(wide, hn::PromoteTo(Doubles(), xhat), product);
  }
  HWY_INLINE hn::Vec<Floats> stepped(std::size_t at) const {
    const Floats d;
    auto gradient = hn::LoadU(d, dy + at);
    if constexpr (kAdds) gradient = hn::Add(gradient, hn::LoadU(d, added + at));
    if constexpr (kSelects) gradient = hn::IfThenElseZero(load_bits(d, at, positive), gradient);
    if constexpr (kAdds || kSelects) hn::StoreU(gradient, d, dy + at);
    return gradient;
  }
};

std::size_t channel_size(const BatchNormShape& shape) {
  return std::size_t{1} * shape.pixels * shape.batch;
}

void sums_of_squares(const BatchNormShape& shape, const float* x, std::int64_t* sums) {
  const Groups groups(shape);
  for (int c = 0; c < shape.channels; ++c, x += channel_size(shape), sums += kBatchNormWords)
    add_channel(groups, SquareTerms{x}, sums);
}

template <bool kAdds, bool kSelects>
void sums_of_stepped(const BatchNormShape& shape, NormSteps steps, const float* x, float* dy,
                     const BatchNormChannel* channels, std::int64_t* sums) {
  const Groups groups(shape);
  const std::size_t size = channel_size(shape);
  for (int c = 0; c < shape.channels; ++c, x += size, dy += size, sums += kBatchNormWords) {
    const NormGradientTerms<kAdds, kSelects> terms{
        x, dy, steps.added, steps.positive, channels[c].mean, channels[c].rstd};
    add_channel(groups, terms, sums);
    if constexpr (kAdds) steps.added += size;
    if constexpr (kSelects) steps.positive += size / kByte;
  }
}

void sums_behind_steps(const BatchNormShape& shape, const NormSteps& steps, const float* x, float* dy,
                       const BatchNormChannel* channels, std::int64_t* sums) {
  const auto call = steps.added == nullptr
                        ? (steps.has_relu ? sums_of_stepped<false, true> : sums_of_stepped<false, false>)
                        : (steps.has_relu ? sums_of_stepped<true, true> : sums_of_stepped<true, false>);
  call(shape, steps, x, dy, channels, sums);
}

enum class Relu { kNone, kForgets, kRemembers };

template <bool kAdds, Relu kRelu, class Maxima>
void normalise_and_step(const BatchNormShape& shape, const float* x, const BatchNormChannel* channels,
                        const float* weight, const float* bias, NormSteps steps, float* y, Maxima maxima) {
  const Samples d;
  const std::size_t size = channel_size(shape);
  for (int c = 0; c < shape.channels; ++c, x += size, y += size) {
    const auto mean = hn::Set(d, channels[c].mean);
    const auto scale = hn::Set(d, weight == nullptr ? channels[c].rstd : channels[c].rstd * weight[c]);
    const auto shift = hn::Set(d, bias == nullptr ? 0 : bias[c]);
    for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
      auto value = multiply_add(hn::Sub(hn::LoadU(d, x + i), mean), scale, shift);
      if constexpr (kAdds) value = hn::Add(value, hn::LoadU(d, steps.added + i));
      if constexpr (kRelu == Relu::kRemembers) store_bits(d, hn::Gt(value, hn::Zero(d)), i, steps.positive);
      if constexpr (kRelu != Relu::kNone) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
      maxima.take(d, value);
      hn::StoreU(value, d, y + i);
    }
    if constexpr (kAdds) steps.added += size;
    if constexpr (kRelu == Relu::kRemembers) steps.positive += size / kByte;
  }
}

void normalise(const BatchNormShape& shape, const float* x, const BatchNormChannel* channels,
               const float* weight, const float* bias, const NormSteps& steps, float* y,
               std::uint32_t* maxima) {
  const auto run = [&]<Relu kRelu, class Maxima>(std::integral_constant<Relu, kRelu>, const Maxima& found) {
    const auto step = steps.added == nullptr ? normalise_and_step<false, kRelu, Maxima>
                                             : normalise_and_step<true, kRelu, Maxima>;
    step(shape, x, channels, weight, bias, steps, y, found);
  };
  const auto finding = [&](const auto& found) {
    if (!steps.has_relu) return run(std::integral_constant<Relu, Relu::kNone>(), found);
    if (steps.positive == nullptr) return run(std::integral_constant<Relu, Relu::kForgets>(), found);
    run(std::integral_constant<Relu, Relu::kRemembers>(), found);
  };
  maxima == nullptr ? finding(NoMaxima()) : finding(MaximaOnTheWay(shape.batch, maxima));
}

/// Padding columns stay without a gradient.
void clear_padding(const BatchNormShape& shape, float* dx) {
  for (int pixel = 0; pixel < shape.pixels; ++pixel, dx += shape.batch)
    std::fill(dx + shape.samples, dx + shape.batch, 0.0F);
}

template <class Maxima>
void go_back_finding(const BatchNormShape& shape, const float* x, const float* dy,
                     const BatchNormChannel* channels, const float* weight, float* dx, Maxima maxima) {
  const Samples d;
  const std::size_t size = channel_size(shape);
  for (int c = 0; c < shape.channels; ++c, x += size, dy += size, dx += size) {
    const BatchNormChannel& channel = channels[c];
    const auto mean = hn::Set(d, channel.mean), rstd = hn::Set(d, channel.rstd);
    const auto mean_dy = hn::Set(d, channel.mean_dy), mean_dy_xhat = hn::Set(d, channel.mean_dy_xhat);
    const auto scale = hn::Set(d, weight == nullptr ? channel.rstd : channel.rstd * weight[c]);
    for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
      const auto xhat = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd);
      const auto distance = hn::Sub(hn::LoadU(d, dy + i), mean_dy);
      const auto gradient = hn::Mul(negative_multiply_add(xhat, mean_dy_xhat, distance), scale);
      maxima.take(d, gradient);
      hn::StoreU(gradient, d, dx + i);
    }
    if (shape.samples < shape.batch) clear_padding(shape, dx);
  }
}

void normalise_backward(const BatchNormShape& shape, const float* x, const float* dy,
                        const BatchNormChannel* channels, const float* weight, float* dx,
                        std::uint32_t* maxima) {
  maxima == nullptr
      ? go_back_finding(shape, x, dy, channels, weight, dx, NoMaxima())
      : go_back_finding(shape, x, dy, channels, weight, dx, MaximaOnTheWay(shape.batch, maxima));
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(sums_of_squares);
HWY_EXPORT(sums_behind_steps);
HWY_EXPORT(normalise);
HWY_EXPORT(normalise_backward);

void batch_norm_sums(const BatchNormShape& shape, const float* x, std::int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(sums_of_squares)(shape, x, sums);
}

void batch_norm_gradient_sums(const BatchNormShape& shape, const NormSteps& steps, const float* x, float* dy,
                              const BatchNormChannel* channels, std::int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(sums_behind_steps)(shape, steps, x, dy, channels, sums);
}

void batch_norm_forward(const BatchNormShape& shape, const float* x, const BatchNormChannel* channels,
                        const float* weight, const float* bias, const NormSteps& steps, float* y,
                        std::uint32_t* maxima) {
  HWY_DYNAMIC_DISPATCH(normalise)(shape, x, channels, weight, bias, steps, y, maxima);
}

void batch_norm_backward(const BatchNormShape& shape, const float* x, const float* dy,
                         const BatchNormChannel* channels, const float* weight, float* dx,
                         std::uint32_t* maxima) {
  HWY_DYNAMIC_DISPATCH(normalise_backward)(shape, x, dy, channels, weight, dx, maxima);
}

}  // namespace lockstep::cpu
#endif
