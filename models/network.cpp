// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Network: from a name to a YAML file to layers, and what can be said about the whole.
#include "models/network.hpp"

#include "common/yaml/strict_yaml.hpp"
#include "models/find_model.hpp"
#include "models/initial_weights.hpp"
#include "models/layer.hpp"
#include "models/network_builder.hpp"

#include <algorithm>

namespace lockstep {

Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

Network Network::load(const std::string& source, const ImageShape& input, int classes) {
  const std::string path = find_model(source);
  return parse(read_yaml_file(path), path, input, classes);
}

Network Network::parse(const std::string& yaml, const std::string& file, const ImageShape& input, int classes,
                       UnreadLayers unread) {
  Network network = NetworkBuilder(file, input, classes, unread).build(load_strict_yaml(yaml, file));
  network.yaml_ = yaml;
  return network;
}

double Network::training_flops_per_sample() const {
  double flops = 0;
  bool is_first = true;
  for (const auto& layer : layers_) {
    if (layer->parameters().empty()) continue;
    flops += (is_first ? 2 : 3) * layer->flops_per_sample();
    is_first = false;
  }
  return flops;
}

void Network::initialise(std::uint64_t seed, std::span<float> weights, double normal_std) const {
  const double std = normal_std > 0 ? normal_std : normal_std_;
  LOCKSTEP_CHECK(weights.size() == parameters_.weights_size());
  const std::vector<Parameter> tensors = parameters_.tensors();
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const Parameter& parameter = tensors[index];
    const std::span<float> range = weights.subspan(parameter.offset, parameter.size);
    const InitialWeights initial(seed, static_cast<std::uint32_t>(index));
    if (parameter.initial != Parameter::Initial::kRandom) {
      std::ranges::fill(range, parameter.initial == Parameter::Initial::kOnes ? 1.0F : 0.0F);
    } else if (std == 0) {
      initial.fill_uniform(parameter.fan_in, range);
    } else if (parameter.shape.size() == 1) {
      std::fill(range.begin(), range.end(), 0.0F);
    } else {
      initial.fill_normal(std, range);
    }
  }
}

}  // namespace lockstep
