// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a network takes on a GPU, before anything is allocated there.
#pragma once

#include "models/network.hpp"
#include "models/stages.hpp"

#include <cstdint>
#include <vector>

namespace lockstep {

/// What DeviceExecution keeps for one stage, for each sample.
struct StageMemory {
  std::uint64_t y = 0;              ///< numbers: the output
  std::uint64_t mask = 0;           ///< bytes: of the epilogue, or what a layer without one saves
  std::uint64_t gradient = 0;       ///< numbers: its own gradient before the epilogue; 0: another's, or none
  std::uint64_t from_branches = 0;  ///< numbers: the gradient that branches of its output bring
  std::uint64_t detour =
      0;  ///< numbers: the gradient of y, where the stage behind cannot store through the epilogue
};

/// One for each stage. Evaluation needs no gradients.
/// @param input_gradient  that of the first stage's input is wanted, too
std::vector<StageMemory> plan_stage_memory(const std::vector<Stage>& stages, bool training,
                                           bool input_gradient = false);

/// What DeviceExecution keeps for the two ends of a part, for each sample.
struct PartEnds {
  std::uint64_t input = 0;            ///< numbers
  std::uint64_t input_gradient = 0;   ///< numbers: in memory of its own; 0: in another's, or not wanted
  std::uint64_t from_branches = 0;    ///< numbers: the gradient that branches of the input bring
  std::uint64_t output_gradient = 0;  ///< numbers: as others bring it
};
/// @param stages  of the part
PartEnds plan_part_ends(const Network& network, const NetworkPart& part, const std::vector<Stage>& stages,
                        bool training);

/// Numbers of the longest bias that a layer's kernels take and it does not have.
std::size_t longest_missing_bias(const Network& network);
/// Sums for the gradient of such a bias, and one word more; 0: all layers have their biases.
std::size_t unread_sums_of(const Network& network);

/// Bytes of activations, masks and gradients for that many samples at a time, and of what stands in for missing biases.
std::uint64_t device_execution_bytes(const Network& network, std::int64_t samples, bool training,
                                     const NetworkPart& part = {});

/// @throws ShapeError  a tensor or a convolution of this network is larger than GPU kernels can number, with
/// so many samples of one rank in a step: which layer, the limit, and what helps
void check_device_limits(const Network& network, std::int64_t samples);

}  // namespace lockstep
