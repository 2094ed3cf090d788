// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Column maxima on the way through a tensor, a vector at a time; compiled once for each SIMD target.

#if defined(LOCKSTEP_CPU_COLUMN_MAXIMA_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_COLUMN_MAXIMA_INL_HPP
#undef LOCKSTEP_CPU_COLUMN_MAXIMA_INL_HPP
#else
#define LOCKSTEP_CPU_COLUMN_MAXIMA_INL_HPP
#endif

#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// ColumnMaxima::bits in the making: the vectors of a tensor [features, batch] come in their order.
class MaximaOnTheWay {
 public:
  /// @param bits  [batch], overwritten
  MaximaOnTheWay(std::size_t batch, std::uint32_t* bits) : batch_(batch), bits_(bits) {
    std::fill_n(bits, batch, 0U);
  }

  /// The next vector, whose size divides the batch.
  template <class D>
  HWY_INLINE void take(D d, hn::Vec<D> numbers) {
    const hn::RebindToSigned<D> integers;
    auto* const at = reinterpret_cast<std::int32_t*>(bits_ + column_);
    const auto magnitude = hn::And(hn::BitCast(integers, numbers), hn::Set(integers, 0x7FFFFFFF));
    hn::StoreU(hn::Max(hn::LoadU(integers, at), magnitude), integers, at);
    column_ += hn::Lanes(d);
    if (column_ == batch_) column_ = 0;
  }

 private:
  std::size_t batch_, column_ = 0;
  std::uint32_t* bits_;
};

/// In place of it, where no maxima are wanted.
struct NoMaxima {
  template <class D, class V>
  HWY_INLINE void take(D, V) {}
};

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
