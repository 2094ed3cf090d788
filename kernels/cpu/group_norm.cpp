// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// layer_norm and group_norm: the lanes of 16 samples at a time. First the sums of a group, then its numbers, which are
/// still in the cache.
#include "kernels/batch_norm.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/group_norm.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/multiply_add_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

using WideLanes = hn::CappedTag<double, 8>;
using NarrowLanes = hn::Rebind<float, WideLanes>;
using NormLanes = hn::CappedTag<float, kGroupNormLanes>;
using Wide = hn::Vec<WideLanes>;

static_assert(kGroupNormLanes == kLanes);

HWY_INLINE Wide load_wide(const float* from) {
  return hn::PromoteTo(WideLanes(), hn::LoadU(NarrowLanes(), from));
}

/// The sum of term(k), of numbers 0 to count - 1.
template <class Term>
HWY_INLINE Wide sum_of_group(std::size_t count, const Term& term) {
  Wide chains[kGroupNormChains];
  for (Wide& chain : chains) chain = hn::Zero(WideLanes());
  std::size_t k = 0;
  for (; k + kGroupNormChains <= count; k += kGroupNormChains) {
    for (std::size_t c = 0; c < kGroupNormChains; ++c) chains[c] = hn::Add(chains[c], term(k + c));
  }
  for (std::size_t c = 0; k < count; ++k, ++c) chains[c] = hn::Add(chains[c], term(k));
  for (std::size_t half = kGroupNormChains / 2; half > 0; half /= 2) {
    for (std::size_t c = 0; c < half; ++c) chains[c] = hn::Add(chains[c], chains[c + half]);
  }
  return chains[0];
}

/// Calls f(lane) for the vectors of doubles that cover kGroupNormLanes samples.
template <class F>
HWY_INLINE void for_each_wide(const F& f) {
  for (std::size_t lane = 0; lane < kGroupNormLanes; lane += hn::Lanes(WideLanes())) f(lane);
}

/// Offsets of the numbers of a group and of its statistics, from the first of some lanes on.
struct GroupPlace {
  std::size_t numbers, statistics;
  int channel;  ///< the first one
};

/// Calls f(place) for each group of each kGroupNormLanes samples.
template <class F>
HWY_INLINE void for_each_group(const GroupNormShape& shape, const F& f) {
  const std::size_t batch = shape.batch, size = batch * shape.group_size();
  for (int g = 0; g < shape.groups; ++g) {
    for (std::size_t n = 0; n < batch; n += kGroupNormLanes)
      f(GroupPlace{g * size + n, g * batch + n, g * shape.channels_of_group()});
  }
}

/// Calls f(channel, offset) for each number of a group, `offset` for its first lane.
template <class F>
HWY_INLINE void for_each_number(const GroupNormShape& shape, const GroupPlace& place, const F& f) {
  std::size_t offset = place.numbers;
  for (int c = place.channel; c < place.channel + shape.channels_of_group(); ++c)
    for (int pixel = 0; pixel < shape.pixels; ++pixel, offset += shape.batch) f(c, offset);
}

/// mean and rstd of kGroupNormLanes samples.
HWY_INLINE void find_group_statistics(std::size_t count, std::size_t stride, double eps, const float* x,
                                      float* mean, float* rstd) {
  const WideLanes d;
  const auto numbers = static_cast<double>(count);
  HWY_ALIGN double variances[kGroupNormLanes];
  for_each_wide([&](std::size_t lane) HWY_ATTR {
    const float* first = x + lane;
    const Wide sum =
        sum_of_group(count, [&](std::size_t k) HWY_ATTR { return load_wide(first + k * stride); });
    const Wide middle = hn::Div(sum, hn::Set(d, numbers));
    const Wide squares = sum_of_group(count, [&](std::size_t k) HWY_ATTR {
      const Wide distance = hn::Sub(load_wide(first + k * stride), middle);
      return hn::Mul(distance, distance);
    });
    hn::StoreU(hn::DemoteTo(NarrowLanes(), middle), NarrowLanes(), mean + lane);
    hn::StoreU(hn::Div(squares, hn::Set(d, numbers)), d, variances + lane);
  });
  for (int lane = 0; lane < kGroupNormLanes; ++lane) rstd[lane] = batch_norm_rstd(variances[lane], eps);
}

void normalise_groups(const GroupNormShape& shape, double eps, const float* x, const float* weight,
                      const float* bias, float* statistics, float* y) {
  const NormLanes d;
  const std::size_t half = shape.statistics_size() / 2;
  for_each_group(shape, [&](const GroupPlace& place) HWY_ATTR {
    float *means = statistics + place.statistics, *rstds = means + half;
    find_group_statistics(shape.group_size(), shape.batch, eps, x + place.numbers, means, rstds);
    for (std::size_t lane = 0; lane < kGroupNormLanes; lane += hn::Lanes(d)) {
      const auto mean = hn::LoadU(d, means + lane), rstd = hn::LoadU(d, rstds + lane);
      for_each_number(shape, place, [&](int channel, std::size_t offset) HWY_ATTR {
        auto xhat = hn::Mul(hn::Sub(hn::LoadU(d, x + offset + lane), mean), rstd);
        if (weight != nullptr)
          xhat = multiply_add(xhat, hn::Set(d, weight[channel]), hn::Set(d, bias[channel]));
        hn::StoreU(xhat, d, y + offset + lane);
      });
    }
  });
}

/// The means over a group that its gradient is made with, of kGroupNormLanes samples.
struct GroupSlope {
  HWY_ALIGN float mean_g[kGroupNormLanes];
  HWY_ALIGN float mean_g_xhat[kGroupNormLanes];
};

HWY_INLINE void find_group_slope(const GroupNormShape& shape, const GroupPlace& place, const float* x,
                                 const float* dy, const float* weight, const float* means, const float* rstds,
                                 GroupSlope& slope) {
  const WideLanes d;
  const NarrowLanes narrow;
  const std::size_t count = shape.group_size(), stride = shape.batch, pixels = shape.pixels;
  const Wide numbers = hn::Set(d, static_cast<double>(count));
  for_each_wide([&](std::size_t lane) HWY_ATTR {
    const std::size_t first = place.numbers + lane;
    const auto mean = hn::LoadU(narrow, means + lane), rstd = hn::LoadU(narrow, rstds + lane);
    const auto g = [&](std::size_t k) HWY_ATTR {
      const auto gradient = hn::LoadU(narrow, dy + first + k * stride);
      if (weight == nullptr) return gradient;
      return hn::Mul(gradient, hn::Set(narrow, weight[place.channel + k / pixels]));
    };
    const Wide sum = sum_of_group(count, [&](std::size_t k) HWY_ATTR { return hn::PromoteTo(d, g(k)); });
    const Wide product = sum_of_group(count, [&](std::size_t k) HWY_ATTR {
      const auto xhat = hn::Mul(hn::Sub(hn::LoadU(narrow, x + first + k * stride), mean), rstd);
      return hn::Mul(hn::PromoteTo(d, g(k)), hn::PromoteTo(d, xhat));
    });
    hn::StoreU(hn::DemoteTo(narrow, hn::Div(sum, numbers)), narrow, slope.mean_g + lane);
    hn::StoreU(hn::DemoteTo(narrow, hn::Div(product, numbers)), narrow, slope.mean_g_xhat + lane);
  });
}

void normalise_groups_backward(const GroupNormShape& shape, const float* x, const float* dy,
                               const float* weight, const float* statistics, float* dx) {
  const NormLanes d;
  const std::size_t half = shape.statistics_size() / 2;
  for_each_group(shape, [&](const GroupPlace& place) HWY_ATTR {
    const float *means = statistics + place.statistics, *rstds = means + half;
    GroupSlope slope;
    find_group_slope(shape, place, x, dy, weight, means, rstds, slope);
    for (std::size_t lane = 0; lane < kGroupNormLanes; lane += hn::Lanes(d)) {
      const auto mean = hn::LoadU(d, means + lane), rstd = hn::LoadU(d, rstds + lane);
      const auto mean_g = hn::LoadU(d, slope.mean_g + lane), product = hn::LoadU(d, slope.mean_g_xhat + lane);
      for_each_number(shape, place, [&](int channel, std::size_t offset) HWY_ATTR {
        auto g = hn::LoadU(d, dy + offset + lane);
        if (weight != nullptr) g = hn::Mul(g, hn::Set(d, weight[channel]));
        const auto xhat = hn::Mul(hn::Sub(hn::LoadU(d, x + offset + lane), mean), rstd);
        hn::StoreU(hn::Mul(negative_multiply_add(xhat, product, hn::Sub(g, mean_g)), rstd), d,
                   dx + offset + lane);
      });
    }
  });
}

float sum_of_lanes(double* lanes) {
  for (int half = kGroupNormLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return static_cast<float>(lanes[0]);
}

void sum_norm_weights(const GroupNormShape& shape, const float* x, const float* dy, const float* statistics,
                      float* dweight, float* dbias) {
  const WideLanes d;
  const NarrowLanes narrow;
  const std::size_t batch = shape.batch, size = batch * shape.pixels, half = shape.statistics_size() / 2;
  HWY_ALIGN double products[kGroupNormLanes], sums[kGroupNormLanes];
  for (int c = 0; c < shape.channels; ++c, x += size, dy += size) {
    const float* means = statistics + c / shape.channels_of_group() * batch;
    for_each_wide([&](std::size_t lane) HWY_ATTR {
      Wide product[kGroupNormPixelChains], sum[kGroupNormPixelChains];
      for (int q = 0; q < kGroupNormPixelChains; ++q) product[q] = sum[q] = hn::Zero(d);
      for (int pixel = 0; pixel < shape.pixels; ++pixel) {
        const int q = pixel % kGroupNormPixelChains;
        const std::size_t first = pixel * batch;
        for (std::size_t n = lane; n < batch; n += kGroupNormLanes) {
          const auto mean = hn::LoadU(narrow, means + n), rstd = hn::LoadU(narrow, means + half + n);
          const auto xhat = hn::Mul(hn::Sub(hn::LoadU(narrow, x + first + n), mean), rstd);
          const Wide gradient = load_wide(dy + first + n);
          sum[q] = hn::Add(sum[q], gradient);
          product[q] = hn::Add(product[q], hn::Mul(gradient, hn::PromoteTo(d, xhat)));
        }
      }
      hn::StoreU(hn::Add(hn::Add(product[0], product[1]), hn::Add(product[2], product[3])), d,
                 products + lane);
      hn::StoreU(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])), d, sums + lane);
    });
    dweight[c] = sum_of_lanes(products);
    dbias[c] = sum_of_lanes(sums);
  }
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(normalise_groups);
HWY_EXPORT(normalise_groups_backward);
HWY_EXPORT(sum_norm_weights);

void group_norm_forward(const GroupNormShape& shape, double eps, const float* x, const float* weight,
                        const float* bias, float* statistics, float* y) {
  HWY_DYNAMIC_DISPATCH(normalise_groups)(shape, eps, x, weight, bias, statistics, y);
}

void group_norm_backward(const GroupNormShape& shape, const float* x, const float* dy, const float* weight,
                         const float* statistics, float* dx) {
  HWY_DYNAMIC_DISPATCH(normalise_groups_backward)(shape, x, dy, weight, statistics, dx);
}

void group_norm_weight_gradients(const GroupNormShape& shape, const float* x, const float* dy,
                                 const float* statistics, float* dweight, float* dbias) {
  HWY_DYNAMIC_DISPATCH(sum_norm_weights)(shape, x, dy, statistics, dweight, dbias);
}

}  // namespace lockstep::cpu
#endif
