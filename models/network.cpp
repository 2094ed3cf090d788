// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Network: from a name to a YAML file to layers, and what can be said about the whole.
#include "models/network.hpp"

#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "kernels/numerics/portable_math.hpp"
#include "kernels/numerics/random.hpp"
#include "models/arena.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"
#include "models/shipped_models.hpp"
#include "models/tensor_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep {

// A name to a path or to a text, or a list of the names there are.

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> model_directories() {
  std::vector<fs::path> directories = shared_directories("models");
  if (const std::string given = environment_variable("LOCKSTEP_MODELS"); !given.empty())
    directories.emplace(directories.begin(), given);
  return directories;
}

/// The file of a model in the first of its directories; empty: there is none.
std::string find_file_of(const std::string& name) {
  for (const fs::path& directory : model_directories()) {
    const fs::path file = directory / (name + ".yaml");
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file.string();
  }
  return "";
}

/// The YAML of a model that ships with Lockstep; empty: there is no such model.
std::string_view shipped_model(std::string_view name) {
  for (const auto& [shipped, yaml] : kShippedModels)
    if (shipped == name) return yaml;
  return {};
}

}  // namespace

std::vector<std::string> known_models() {
  std::set<std::string> names;
  for (const auto& [name, yaml] : kShippedModels) names.emplace(name);
  for (const fs::path& directory : model_directories()) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored))
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

std::string find_model(const std::string& source) {
  if (is_model_path(source)) return source;
  if (std::string file = find_file_of(source); !file.empty()) return file;
  const std::vector<std::string> names = known_models();
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::vector<std::string> places;
  for (const fs::path& directory : model_directories()) places.push_back(directory.string());
  throw ConfigError(
      fmt::format("model {}: there is no such model{}; known: {}; looked in {}; for a file of your own "
                  "give its path, such as ./{}.yaml",
                  quoted_text(source), did_you_mean(source, candidates), fmt::join(names, ", "),
                  fmt::join(places, ", "), source.empty() ? "my_net" : source));
}

// From the text to a network.

Network Network::load(const std::string& source, const ImageShape& input, int classes, Precision precision,
                      std::span<const LayerKind> own) {
  const bool is_built_in =
      !is_model_path(source) && find_file_of(source).empty() && !shipped_model(source).empty();
  const std::string file = is_built_in ? source + ".yaml" : find_model(source);
  return parse(is_built_in ? std::string(shipped_model(source)) : read_yaml_file(file), file, input, classes,
               UnreadLayers::kRefused, precision, own);
}

namespace {

/// @param flops_of  FLOPs of layer i in one direction
template <typename Flops>
double training_flops(Layers layers, const Flops& flops_of) {
  double flops = 0;
  bool is_first = true;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i]->parameters().empty()) continue;
    flops += (is_first ? 2 : 3) * flops_of(i);
    is_first = false;
  }
  return flops;
}

}  // namespace

double Network::training_flops_per_sample() const {
  return training_flops(layers_, [&](std::size_t i) { return layers_[i]->flops_per_sample(); });
}

double Network::needed_training_flops_per_sample() const {
  const std::vector<ImagePart> read = parts_read(layers_, 0, layers_.size());
  return training_flops(layers_, [&](std::size_t i) { return layers_[i]->needed_flops_per_sample(read[i]); });
}

void Network::initialise(std::uint64_t seed, std::span<float> weights, double normal_std) const {
  const double std = normal_std > 0 ? normal_std : normal_std_;
  LOCKSTEP_CHECK(weights.size() == parameters_.weights_size());
  const std::vector<Parameter> tensors = parameters_.tensors();
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const Parameter& parameter = tensors[index];
    const std::span<float> range = weights.subspan(parameter.offset, parameter.size);
    const InitialWeights initial{seed, static_cast<std::uint32_t>(index)};
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

// InitialWeights.

namespace {

/// Calls make(word) for each element.
template <typename Make>
void fill(const InitialWeights& initial, std::span<float> weights, Make make) {
  const std::uint32_t stream = random_stream(RandomUse::kInitialise, initial.parameter);
  for (std::size_t first = 0; first < weights.size(); first += 4) {
    const Philox4 block = philox(initial.seed, {{static_cast<std::uint32_t>(first / 4), 0, stream, 0}});
    const std::size_t count = std::min<std::size_t>(4, weights.size() - first);
    for (std::size_t i = 0; i < count; ++i) weights[first + i] = static_cast<float>(make(block.value[i]));
  }
}

}  // namespace

void InitialWeights::fill_uniform(int fan_in, std::span<float> weights) const {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  fill(*this, weights, [bound](std::uint32_t word) { return (2.0 * uniform01(word) - 1) * bound; });
}

void InitialWeights::fill_normal(double std, std::span<float> weights) const {
  fill(*this, weights,
       [std](std::uint32_t word) { return std * normal_quantile((word + 0.5) / 4294967296.0); });
}

// Network::summary: the layers as a table for people.

std::string Network::summary() const {
  TableRows rows{{"layer", "kind", "output", "parameters"}, {"input", "", to_string(input_), ""}};
  for (const auto& layer : layers_) {
    const std::size_t count = layer->parameter_size();
    rows.push_back(
        {layer->name(), layer->describe(), to_string(layer->output()), count ? with_thousands(count) : ""});
  }
  rows.push_back({"total", "", "", with_thousands(parameters_.size)});
  return align_columns(rows, {3});
}

// ParameterLayout: what is trained, then what is kept.

std::vector<Parameter> ParameterLayout::tensors() const {
  std::vector<Parameter> all = parameters;
  all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

// backward_ranges: one walk over the layers, last to first.

std::vector<BackwardRange> backward_ranges(const Network& network) {
  std::vector<BackwardRange> ranges;
  double data_gradient = 0;
  for (std::size_t i = network.layers().size(); i-- > 0;) {
    const Layer* layer = network.layers()[i].get();
    if (layer->parameters().empty()) continue;
    const double flops = layer->flops_per_sample();
    if (!ranges.empty()) ranges.back().flops = data_gradient + flops;
    ranges.push_back({layer->parameter_offset(), layer->parameter_size(), 0});
    data_gradient = flops;
  }
  return ranges;
}

}  // namespace lockstep
