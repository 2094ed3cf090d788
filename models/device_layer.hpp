// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Passes of one layer on a GPU: facts for cutting into stages, and the inputs of a pass.
#pragma once

#include "kernels/device_epilogue.hpp"
#include "kernels/device_sums.hpp"
#include "kernels/step_state.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

class DeviceOps;  // kernels/device_ops.hpp
class Stream;     // kernels/device.hpp

/// The form of a layer when a network is cut into stages (models/stages.hpp).
struct DeviceForm {
  enum class As {
    kNothing,       ///< no number changes: a view
    kEpilogueStep,  ///< a step at the end of another layer's kernels
    kStage,         ///< separate kernels: Layer::device_forward and so on
  };
  /// How far the kernel of the data gradient can store through the epilogue of the stage before it.
  enum class StoresThrough { kNothing, kSameShape, kAnyShape };

  As as = As::kStage;
  EpilogueStep step = {};  ///< for kEpilogueStep
  int pool = 1;            ///< for kEpilogueStep: the side of its window, 1 or 2
  // For kStage:
  bool takes_epilogue = false;  ///< its forward kernel ends with any epilogue
  StoresThrough stores_through = StoresThrough::kNothing;
  /// The gradient of x is that of y, number by number, so that there is no dx to write.
  bool passes_gradient = false;

  static DeviceForm nothing() { return {.as = As::kNothing}; }
  static DeviceForm epilogue_step(const EpilogueStep& step, int pool = 1) {
    return {.as = As::kEpilogueStep, .step = step, .pool = pool};
  }
};

/// Values that all layers share in one pass on a device.
struct DeviceLayerPass {
  DeviceOps& ops;
  Stream& stream;
  int batch = 0;
  int grain = 0;                  ///< in training: columns of a grain
  bool has_first_sample = false;  ///< column 0 is the global batch's first sample
};

/// The tensors of one layer in one pass, device memory in the layout of the ops. The forward pass sets those
/// up to mask, the backward pass what its direction needs.
struct DeviceLayerTensors {
  const float* weights = nullptr;  ///< this layer's range of the arena
  const float* x = nullptr;
  const float* branch = nullptr;  ///< for layers with a branch(): the output of that layer
  float* y = nullptr;             ///< after the epilogue
  std::uint8_t* saved = nullptr;  ///< saved_bytes(batch) bytes, kept from forward to backward
  const Epilogue* epilogue = {};  ///< null, unless the form takes one; forward, and of backward its pool
  const StepState* state = {};    ///< for the epilogue
  std::uint8_t* mask = nullptr;   ///< the epilogue's; null: not wanted
  const float* dy = nullptr;      ///< before the epilogue
  float* dx = nullptr;
  std::byte* statistics = nullptr;              ///< for a BatchLayer
  float* dbranch = nullptr;                     ///< gradient of the branch; null: not needed
  bool adds_to_dbranch = false;                 ///< otherwise overwrites it
  const EpilogueBackward* through = nullptr;    ///< dx is stored through it; null, unless the form can
  int grain = 0;                                ///< columns of a grain
  std::span<const ExactTarget> gradients = {};  ///< for each parameter of the layer
  // For a layer with a missing_bias():
  const float* zero_bias = nullptr;  ///< as many zeros
  ExactTarget unread_gradient = {};  ///< destination of gradients of nothing: as many
};

}  // namespace lockstep
