// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ONNX files: a network with its weights for other programs, and the tensors of such a file.
#pragma once

#include "common/safetensors.hpp"
#include "models/network.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Facts in a file beside the network.
struct OnnxFacts {
  /// One number for all channels, or one for each. The graph takes pixels from 0 to 1, as torchvision's ToTensor
  /// makes them, and computes (pixel - mean) / std first. Empty: numbers enter as they are.
  std::vector<double> mean = {}, std = {};
  std::string program;                          ///< its version
  std::map<std::string, std::string> metadata;  ///< metadata_props
};

/// The file of a network in evaluation. It has operator set 17, IR version 8, one input `image` [N, channels, height,
/// width] and one output `logits` [N, classes], both fp32, with any N. Layers that change nothing in evaluation are
/// no nodes.
/// @param weights  [network.parameters().weights_size()]
/// @throws UsageError  it would be larger than the 2 GiB that Protocol Buffers allow
std::vector<std::byte> write_onnx(const Network& network, std::span<const float> weights,
                                  const OnnxFacts& facts);

/// The graph's initialisers as named tensors, for models/foreign_weights.hpp; nodes are not read. Single numbers and
/// those of whole-number types are left out. Numbers may lie in plain files of `file`'s folder. The bytes may be
/// hostile: their size and those files' bound what is allocated.
/// @param metadata           metadata_props are added to it
/// @throws DataError         damaged: names `file` and the tensor
/// @throws MissingDataError  a file beside it is not there
SafetensorsFile read_onnx(std::vector<std::byte> bytes, const std::string& file,
                          std::map<std::string, std::string>* metadata = nullptr);

}  // namespace lockstep
