// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one set of weights that all ranks of a hogwild run train, without locks.
#pragma once

#include "comm/shared_memory.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

/// Every number is read and written by a relaxed atomic access, so no access is a data race, though an update
/// may be lost: a write between another rank's read and write is overwritten.
class SharedWeights {
 public:
  /// Collective, as its end is. All zeros.
  SharedWeights(Communicator& comm, std::size_t count);

  std::size_t size() const { return weights_.size(); }
  /// Number by number: with others at work it may be a mix of their updates. Same sizes.
  void read(std::span<float> into) const;
  void write(std::span<const float> from);

  enum class Lost { kIgnore, kCount };
  /// Adds after - before to each number as it is by now.
  /// @returns with kCount, how many updates of others this one overwrote
  std::int64_t move(std::span<const float> before, std::span<const float> after, Lost lost);

 private:
  std::unique_ptr<SharedMemory> memory_;
  std::span<float> weights_;
};

}  // namespace lockstep
