// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Max-pooling: a lane is a sample, so a window is a few comparisons of whole vectors.
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/max_pool.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/pool_window_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Pixels = hn::CappedTag<float, 16>;
using Positions = hn::RebindToSigned<Pixels>;
using PositionBytes = hn::Rebind<std::uint8_t, Positions>;

/// A running maximum. The first of equals wins, as in PyTorch, and NaN beats every number.
struct Best {
  hn::Vec<Pixels> value;
  hn::Vec<Positions> position;
};

HWY_INLINE void challenge(Best& best, hn::Vec<Pixels> value, int position) {
  const auto wins = hn::Or(hn::Gt(value, best.value), hn::IsNaN(value));
  best.value = hn::IfThenElse(wins, value, best.value);
  best.position =
      hn::IfThenElse(hn::RebindMask(Positions(), wins), hn::Set(Positions(), position), best.position);
}

HWY_INLINE void store_best(const Best& best, float* y, std::uint8_t* argmax) {
  hn::StoreU(best.value, Pixels(), y);
  hn::StoreU(hn::DemoteTo(PositionBytes(), best.position), PositionBytes(), argmax);
}

HWY_INLINE hn::Vec<Positions> load_positions(const std::uint8_t* argmax) {
  return hn::PromoteTo(Positions(), hn::LoadU(PositionBytes(), argmax));
}

/// dy in the lanes whose maximum was at this position, else 0.
HWY_INLINE hn::Vec<Pixels> gradient_at(int position, hn::Vec<Positions> best, hn::Vec<Pixels> dy) {
  const auto chosen = hn::RebindMask(Pixels(), hn::Eq(best, hn::Set(Positions(), position)));
  return hn::IfThenElseZero(chosen, dy);
}

void max_halving_forward(const Pool2dShape& shape, const float* x, float* y, std::uint8_t* argmax) {
  const Pixels d;
  for_each_quad(shape, hn::Lanes(d), [&](const Quad& quad) HWY_ATTR {
    Best best = {hn::LoadU(d, x + quad.upper_left), hn::Zero(Positions())};
    challenge(best, hn::LoadU(d, x + quad.upper_right), 1);
    challenge(best, hn::LoadU(d, x + quad.lower_left), 2);
    challenge(best, hn::LoadU(d, x + quad.lower_right), 3);
    store_best(best, y + quad.y, argmax + quad.y);
  });
}

void max_forward(const Pool2dShape& shape, const float* x, float* y, std::uint8_t* argmax) {
  if (shape.is_halving()) return max_halving_forward(shape, x, y, argmax);
  const Pixels d;
  const std::size_t batch = shape.batch, lanes = hn::Lanes(d);
  for_each_window(shape, shape.out_height(), shape.out_width(), [&](const PoolWindow& window) HWY_ATTR {
    const int first_tap = window.rows.begin * shape.kernel + window.columns.begin;
    for (std::size_t n = 0; n < batch; n += lanes) {
      Best best = {hn::Set(d, -std::numeric_limits<float>::infinity()), hn::Set(Positions(), first_tap)};
      for_each_tap(shape, window, [&](int row, int column, std::size_t offset) HWY_ATTR {
        challenge(best, hn::LoadU(d, x + offset + n), row * shape.kernel + column);
      });
      store_best(best, y + window.y_offset + n, argmax + window.y_offset + n);
    }
  });
}

void max_halving_backward(const Pool2dShape& shape, const float* dy, const std::uint8_t* argmax, float* dx) {
  const Pixels d;
  zero_odd_edges(shape, dx);
  for_each_quad(shape, hn::Lanes(d), [&](const Quad& quad) HWY_ATTR {
    const auto best = load_positions(argmax + quad.y);
    const auto gradient = hn::LoadU(d, dy + quad.y);
    hn::StoreU(gradient_at(0, best, gradient), d, dx + quad.upper_left);
    hn::StoreU(gradient_at(1, best, gradient), d, dx + quad.upper_right);
    hn::StoreU(gradient_at(2, best, gradient), d, dx + quad.lower_left);
    hn::StoreU(gradient_at(3, best, gradient), d, dx + quad.lower_right);
  });
}

void max_backward(const Pool2dShape& shape, const float* dy, const std::uint8_t* argmax, float* dx) {
  if (shape.is_halving()) return max_halving_backward(shape, dy, argmax, dx);
  const Pixels d;
  const std::size_t batch = shape.batch, lanes = hn::Lanes(d);
  std::fill_n(dx, shape.in_size(), 0.0F);
  for_each_window(shape, shape.out_height(), shape.out_width(), [&](const PoolWindow& window) HWY_ATTR {
    for (std::size_t n = 0; n < batch; n += lanes) {
      const auto best = load_positions(argmax + window.y_offset + n);
      const auto gradient = hn::LoadU(d, dy + window.y_offset + n);
      for_each_tap(shape, window, [&](int row, int column, std::size_t offset) HWY_ATTR {
        float* pixel = dx + offset + n;
        const auto of_tap = gradient_at(row * shape.kernel + column, best, gradient);
        hn::StoreU(hn::Add(hn::LoadU(d, pixel), of_tap), d, pixel);
      });
    }
  });
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(max_forward);
HWY_EXPORT(max_backward);

void max_pool_forward(const Pool2dShape& shape, const float* x, float* y, std::uint8_t* argmax) {
  LOCKSTEP_CHECK(shape.kernel <= 16);
  HWY_DYNAMIC_DISPATCH(max_forward)(shape, x, y, argmax);
}

void max_pool_backward(const Pool2dShape& shape, const float* dy, const std::uint8_t* argmax, float* dx) {
  HWY_DYNAMIC_DISPATCH(max_backward)(shape, dy, argmax, dx);
}

}  // namespace lockstep::cpu
#endif
