// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network as a GPU runs it: layers that one kernel can do together are one stage.
#pragma once

#include "kernels/device/epilogue.hpp"
#include "models/layer_op.hpp"
#include "models/network.hpp"

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

namespace lockstep {

/// What a stage begins with. Shapes have batch 1.
using StageHead = std::variant<std::monostate, Conv2dShape, LinearShape, MaxPoolOp, AvgPoolOp>;

/// A convolution or linear layer and the epilogue behind it; an epilogue alone (std::monostate); or a pool of
/// a general shape, which has an empty epilogue.
struct Stage {
  StageHead head;
  Epilogue epilogue;  ///< of training, without seed and position
  ImageShape input;
  ImageShape before_epilogue;  ///< what the head makes of it
  ImageShape output;
  std::size_t parameter_offset = 0;            ///< in the arena: weight, then bias
  std::size_t weight_size = 0, bias_size = 0;  ///< 0 for stages without

  bool trained() const { return weight_size > 0; }
  std::size_t parameter_size() const { return weight_size + bias_size; }
};

/// All layers of the network in order, each in exactly one stage; views in none. A layer joins the stage
/// before it if that has a head or epilogue that can take it (kernels/device/epilogue.hpp); as a rule a stage
/// for each convolution and linear layer comes out.
std::vector<Stage> fuse_layers(const Network& network);

/// The shape in which the kernel that computes the data gradient of `stage` sees the numbers before the
/// epilogue of `before`, the stage in front of it, so that it can store straight through that epilogue; none
/// if it cannot, and the way back through the epilogue needs a kernel of its own.
///
/// A kernel can where the shapes of both sides are the same, or where, behind a `flatten`, they differ and
/// nothing depends on the shape: a linear layer's numbers have none, and an epilogue without a pool looks at
/// each number alone. General pools never do, and an epilogue alone computes no data gradient.
std::optional<ImageShape> shape_through_epilogue(const Stage& before, const Stage& stage);

/// The epilogue without dropout, which evaluation leaves out.
Epilogue without_dropout(const Epilogue& epilogue);

}  // namespace lockstep
