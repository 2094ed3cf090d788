// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An observer that changes sums on their way.
#pragma once
#include "comm/reduce/sum_check.hpp"

#include <functional>
#include <utility>

namespace lockstep::test {

using See = std::function<void(const ShownSums&)>;

/// Changes sums as these two do, from when it is added.
/// @tparam Observer  SumObserver, or what is one
template <class Observer>
class Saboteur final : public Observer {
 public:
  explicit Saboteur(See leaving, See arrived = {})
      : leaving_(std::move(leaving)), arrived_(std::move(arrived)) {}
  bool sees_sums() const override { return true; }
  void sums_leave(const ShownSums& sums) override {
    if (leaving_) leaving_(sums);
  }
  void sums_arrived(const ShownSums& sums) override {
    if (arrived_) arrived_(sums);
  }

 private:
  See leaving_, arrived_;
};

}  // namespace lockstep::test
