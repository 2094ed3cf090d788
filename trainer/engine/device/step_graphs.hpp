// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whole steps as CUDA graphs: one for each shape of a batch (an epoch's full ones and its last one).
#pragma once

#include "trainer/engine/device/device_step.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep {

/// Queues steps through graphs where it may, and directly otherwise: the same operations either way. The
/// first step of each shape runs directly, which loads kernels and lets libraries allocate; the next one is
/// captured. All ranks see the same shapes in the same order, so all capture at the same step.
class StepGraphs {
 public:
  /// @param enabled  false: never capture
  StepGraphs(DeviceStep& step, bool enabled) : step_(step), enabled_(enabled) {}

  /// Queues `count` steps of the same share of the batch.
  void queue(const BatchShare& share, std::int64_t count);
  /// After the step's units have changed: captured work has the old ones. Nothing may be queued any more.
  void forget() { captured_.clear(); }

 private:
  /// What is captured for one shape. With a reduction by the host a step is a graph for each piece of the
  /// gradients and one for the update, with the host in between; otherwise it is one, of which a series of
  /// several steps is also kept.
  struct Captured {
    BatchShare share;
    std::vector<std::unique_ptr<Graph>> gradients;  ///< one for each piece
    std::vector<CutSums> cuts;                      ///< where each ends
    std::unique_ptr<Graph> update;
    std::unique_ptr<Graph> step, series;
  };

  void queue_directly(const BatchShare& share);
  Captured* find(const BatchShare& share);
  void capture(Captured& captured);
  std::unique_ptr<Graph> capture_steps(const BatchShare& share, int count);
  void launch(Captured& captured, std::int64_t count);

  DeviceStep& step_;
  bool enabled_;
  std::vector<Captured> captured_;
};

}  // namespace lockstep
