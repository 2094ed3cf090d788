// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which layers of a network work on the same tensor on a CPU, and whose output is read again later.
#pragma once

#include "models/layer.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

using Layers = std::span<const std::shared_ptr<const Layer>>;

/// For each layer, whether its output is the branch of a later one.
std::vector<bool> layers_that_branch(Layers layers);

/// For each layer, the number of the tensor that it writes; 0 is the network's input, and a layer reads what
/// the one before it wrote. In place where the layer can and the bits that it would overwrite are not needed.
std::vector<std::size_t> output_tensors(Layers layers);

}  // namespace lockstep
