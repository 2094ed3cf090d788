// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network as a GPU runs it: layers that one kernel can do together are one stage.
#pragma once

#include "kernels/device_epilogue.hpp"
#include "models/network.hpp"
#include "models/tensor_plan.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Layer with separate kernels and the epilogue after it, if it has one; or an epilogue alone.
struct Stage {
  std::shared_ptr<const Layer> head;  ///< null: an epilogue alone
  std::string name;                   ///< its first layer's
  /// Branch of a head: 0 the input of all stages, i + 1 the output of stage i.
  std::optional<std::size_t> branch;
  bool branches = false;  ///< its output is the branch of a later one
  Epilogue epilogue;      ///< in training, without seed and position
  ImageShape input;
  ImageShape before_epilogue;  ///< output of the head
  ImageShape output;

  bool trained() const { return parameter_size() > 0; }
  /// The gradient of its input is that before its epilogue, number by number.
  bool passes_gradient() const;
  std::size_t parameter_offset() const;  ///< in the arena
  std::size_t parameter_size() const;    ///< 0 for stages without
};

/// All layers of the network, or of a part of it, in order, each in exactly one stage. Views in none. A layer joins
/// the stage before it if its form is an epilogue step and that stage can have it (kernels/device_epilogue.hpp). So
/// mostly each convolution and linear layer becomes a stage. A part of views alone has none.
std::vector<Stage> fuse_layers(const Network& network, const NetworkPart& part = {});

/// Shape in which the data-gradient kernel of `stage` sees the numbers before the epilogue of `before`, the
/// stage before it. So it can store straight through that epilogue; none if it cannot, and the backward pass
/// through the epilogue needs a separate kernel.
///
/// A kernel can if both sides have the same shape, or differ after a `flatten` and nothing depends on it. A
/// linear layer's numbers have no shape, and an epilogue without a pool looks at each number alone. General
/// pools never do, an epilogue alone computes no data gradient, and where the output of `before` branches its
/// gradient is a sum of several.
std::optional<ImageShape> shape_through_epilogue(const Stage& before, const Stage& stage);

/// The epilogue without dropout, which evaluation leaves out.
Epilogue without_dropout(const Epilogue& epilogue);

}  // namespace lockstep
