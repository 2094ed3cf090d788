// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ONNX files: a network with its weights for other programs, and the weights of such a file for a network.
#pragma once

#include "models/network.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What a file says beside the network.
struct OnnxFacts {
  /// One number for all channels, or one for each: the graph takes pixels from 0 to 1, as torchvision's ToTensor makes
  /// them, and computes (pixel - mean) / std first. Empty: numbers enter as they are.
  std::vector<double> mean = {}, std = {};
  std::string program;                          ///< its version
  std::map<std::string, std::string> metadata;  ///< metadata_props
};

/// The file of a network in evaluation: operator set 17, IR version 8, one input `image` [N, channels, height, width]
/// and one output `logits` [N, classes], both fp32, with any N. Layers that change nothing in evaluation are no
/// nodes.
/// @param weights  [network.parameters().weights_size()]
/// @throws UsageError  it would be larger than the 2 GiB that Protocol Buffers allow
std::vector<std::byte> write_onnx(const Network& network, std::span<const float> weights,
                                  const OnnxFacts& facts);

/// Fills `weights` from a file that computes what the network computes. Layer by layer the graph is followed from its
/// input, so names and the order of nodes do not matter; whatever differs is refused. The bytes may be hostile: their
/// numbers are compared with the network's before they are used.
///
/// @param file     for messages
/// @param weights  [network.parameters().weights_size()], overwritten
/// @returns "12 tensors of 5 layers, along the graph that pytorch 2.15.0 wrote: conv1 from node '/conv1/Conv', ..."
/// @throws DataError  damaged, or another network: names the layer, the node, and what differs
std::string read_onnx(std::span<const std::byte> bytes, const std::string& file, const Network& network,
                      std::span<float> weights);

}  // namespace lockstep
