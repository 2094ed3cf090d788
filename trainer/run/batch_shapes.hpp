// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sizes of each batch, on the ranks and as a whole, in the words of PyTorch's DataParallel tutorial.
#pragma once

#include "comm/communicator.hpp"
#include "data/sampler.hpp"
#include "models/network.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class BatchShapes {
 public:
  /// Collective. Borrows both.
  BatchShapes(const Network& network, const DeviceChoice& device, Communicator& comm);

  /// "Let's use 2 GPUs! 0: cuda:0 NVIDIA H100, 1: ..."; empty of one rank, as in the tutorial.
  std::string devices_line() const;

  /// A line for each rank that has samples of this step, which says on which device it has them, and one for
  /// all together. Collective: every rank says how many samples it computes; rank 0 gets the lines, the others
  /// none.
  std::vector<std::string> lines(const DistributedSampler& sampler, std::int64_t step_in_epoch) const;

 private:
  const Network& network_;
  Communicator& comm_;
  std::string kind_;
  std::vector<std::string> devices_;  ///< of the ranks
};

}  // namespace lockstep
