// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Drawing the orders that kernels/emulation/thread_order.hpp speaks of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::emulation {

/// Random numbers for orders (splitmix64), restarted when the seed changes. Belongs to one OS thread.
class Order {
 public:
  /// Takes notice of a changed seed.
  void refresh();
  bool natural() const noexcept { return natural_; }
  /// In [0, bound); 0 in the natural order.
  std::size_t draw(std::size_t bound);
  /// 0 ... size - 1, shuffled.
  void permutation(std::size_t size, std::vector<std::uint32_t>& order);

 private:
  std::uint64_t state_ = 0;
  std::uint64_t version_ = 0;  // 0: never refreshed
  bool natural_ = true;
};

}  // namespace lockstep::emulation
