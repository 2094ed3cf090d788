// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// By name as far as there are names; else modules and layers are brought together by shape.
#include "models/foreign_weights.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "models/layer.hpp"

#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace lockstep {

std::string first_and_last(const std::vector<std::string>& all) {
  constexpr std::size_t kFew = 8;
  if (all.size() <= kFew) return fmt::format("{}", fmt::join(all, ", "));
  return fmt::format("{}, {}, ..., {}", all[0], all[1], all.back());
}

namespace {

/// What PyTorch counts beside the running statistics is no part of a network.
constexpr std::string_view kCounter = "num_batches_tracked";

/// "layer1.conv1.weight" → "layer1.conv1" and "weight".
std::pair<std::string, std::string> split(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::vector<std::size_t> shape_of(const Parameter& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

void copy(const TensorView& from, const Parameter& to, std::span<float> weights) {
  std::memcpy(weights.data() + to.offset, from.bytes.data(), from.bytes.size());
}

/// "module." where every tensor's name begins with it; else "".
std::string common_word(const SafetensorsFile& file) {
  if (file.tensors().empty()) return "";
  const std::string& first = file.tensors().front().name;
  const std::string word = first.substr(0, first.find('.') + 1);
  const bool all = std::ranges::all_of(
      file.tensors(), [&](const TensorView& tensor) { return tensor.name.starts_with(word); });
  return all ? word : "";
}

/// A tensor of one of the network's layers that the layer does not have would be dropped, and the rest be another
/// network.
void require_whole_layers(const SafetensorsFile& file, const std::string& word, const Network& network,
                          const std::string& path) {
  const std::vector<Parameter> tensors = network.parameters().tensors();
  for (const TensorView& tensor : file.tensors()) {
    const std::string name = tensor.name.substr(word.size());
    const auto [layer, what] = split(name);
    if (layer.empty() || what == kCounter ||
        std::ranges::find(tensors, name, &Parameter::name) != tensors.end() ||
        std::ranges::find(network.layers(), layer, &Layer::name) == network.layers().end())
      continue;
    throw DataError(fmt::format("{}: it has {}, but the model's {} has none; give both the same layers", path,
                                quoted_text(tensor.name), layer));
  }
}

/// The first tensor of the network that the file does not have; "" if there is none.
std::string missing_name(const SafetensorsFile& file, const std::string& word, const Network& network) {
  for (const Parameter& tensor : network.parameters().tensors())
    if (file.find(word + tensor.name) == nullptr) return tensor.name;
  return "";
}

/// A layer with its tensors, or what a file has under one prefix.
struct Module {
  std::string name;
  std::map<std::string, std::string> tensors;  ///< "weight" → "F32 [10, 1, 5, 5]"
  bool is_norm() const { return tensors.contains("running_mean"); }
};

std::string form_of(const std::string& dtype, const std::vector<std::size_t>& shape) {
  return fmt::format("{} [{}]", dtype, fmt::join(shape, ", "));
}

std::string in_words(const Module& module) {
  std::vector<std::string> parts;
  for (const auto& [what, form] : module.tensors) parts.push_back(what + " " + form);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<Module> modules_of(const SafetensorsFile& file) {
  std::map<std::string, Module> modules;
  for (const TensorView& tensor : file.tensors()) {
    const auto [prefix, what] = split(tensor.name);
    if (what == kCounter) continue;
    Module& module = modules.try_emplace(prefix, Module{prefix, {}}).first->second;
    module.tensors[what] = form_of(tensor.dtype, tensor.shape);
  }
  std::vector<Module> all;
  for (auto& [prefix, module] : modules) all.push_back(std::move(module));
  return all;
}

std::vector<Module> modules_of(const Network& network) {
  std::vector<Module> all;
  for (const auto& layer : network.layers()) {
    Module module{layer->name(), {}};
    for (const auto* tensors : {&layer->parameters(), &layer->kept()})
      for (const Parameter& tensor : *tensors)
        module.tensors[split(tensor.name).second] = form_of("F32", shape_of(tensor));
    if (!module.tensors.empty()) all.push_back(std::move(module));
  }
  return all;
}

/// The numbers in a name, and the name with # for each.
struct NumberedName {
  std::string pattern;
  std::vector<std::uint64_t> numbers;
};

NumberedName numbers_of(const std::string& name) {
  NumberedName found;
  bool in_number = false;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (is_digit && !in_number) found.numbers.push_back(0);
    if (!is_digit || !in_number) found.pattern += is_digit ? '#' : c;
    if (is_digit) found.numbers.back() = found.numbers.back() * 10 + static_cast<std::uint64_t>(c - '0');
    in_number = is_digit;
  }
  return found;
}

/// Names that the batch_norm behind a convolution of this name usually has.
std::vector<std::string> norms_of(const std::string& convolution) {
  const std::size_t dot = convolution.rfind('.') + 1;
  const std::string before = convolution.substr(0, dot), last = convolution.substr(dot);
  std::vector<std::string> names;
  if (!last.empty() && last.size() < 9 &&
      std::ranges::all_of(last, [](char c) { return c >= '0' && c <= '9'; }))
    names.push_back(fmt::format("{}{}", before, std::stoi(last) + 1));
  if (const std::size_t at = last.find("conv"); at != last.npos)
    for (const char* norm : {"bn", "norm"}) {
      std::string name = last;
      names.push_back(before + name.replace(at, 4, norm));
    }
  return names;
}

class ShapeMatcher {
 public:
  ShapeMatcher(std::vector<Module> layers, std::vector<Module> modules, std::string why)
      : layers_(std::move(layers)), modules_(std::move(modules)), why_(std::move(why)) {}

  /// Layer → module of the file.
  std::map<std::string, std::string> match() {
    constexpr std::size_t kMost = 65536;  // far more than a network has layers
    if (modules_.size() > kMost) fail(fmt::format("it has {} modules", modules_.size()));
    for (const Module& layer : layers_)
      if (const Module* module = find(layer.name); module != nullptr && module->tensors == layer.tensors)
        take(layer, layer.name);
    match_shapes([](const Module& layer) { return !layer.is_norm(); });
    match_norms();
    match_shapes([](const Module&) { return true; });
    if (taken_.size() == modules_.size()) return matched_;
    const auto left =
        std::ranges::find_if(modules_, [&](const Module& m) { return !taken_.contains(m.name); });
    fail(fmt::format("{} ({}) is no layer of the model", quoted_text(left->name), in_words(*left)));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}; by shape neither: {}", why_, what));
  }

  const Module* find(const std::string& name) const {
    const auto found = std::ranges::find(modules_, name, &Module::name);
    return found == modules_.end() ? nullptr : &*found;
  }
  void take(const Module& layer, const std::string& module) {
    matched_[layer.name] = module;
    taken_[module] = layer.name;
  }

  /// The layers that are still without a module, form by form.
  template <typename Wanted>
  void match_shapes(const Wanted& wanted) {
    for (const Module& first : layers_) {
      if (matched_.contains(first.name) || !wanted(first)) continue;
      std::vector<const Module*> layers, modules;
      for (const Module& layer : layers_)
        if (layer.tensors == first.tensors && !matched_.contains(layer.name)) layers.push_back(&layer);
      for (const Module& module : modules_)
        if (module.tensors == first.tensors && !taken_.contains(module.name)) modules.push_back(&module);
      if (layers.size() != modules.size())
        fail(fmt::format("the model has {} with {}, such as {}, and the file {}",
                         counted(layers.size(), "layer"), in_words(first), first.name, modules.size()));
      sort_by_number(modules);
      for (std::size_t i = 0; i < layers.size(); ++i) take(*layers[i], modules[i]->name);
    }
  }

  void sort_by_number(std::vector<const Module*>& modules) const {
    const std::string pattern = numbers_of(modules.front()->name).pattern;
    for (const Module* module : modules)
      if (numbers_of(module->name).pattern != pattern)
        fail(
            fmt::format("{} and {} have the same shapes, and their names do not say which comes "
                        "first; name the model's layers as the file does, or export ONNX, which says it",
                        quoted_text(modules.front()->name), quoted_text(module->name)));
    std::ranges::sort(modules, {}, [](const Module* module) { return numbers_of(module->name).numbers; });
  }

  /// A batch_norm by the layer in front of it.
  void match_norms() {
    for (std::size_t i = 1; i < layers_.size(); ++i) {
      const Module& layer = layers_[i];
      const auto before = matched_.find(layers_[i - 1].name);
      if (!layer.is_norm() || matched_.contains(layer.name) || before == matched_.end()) continue;
      for (const std::string& name : norms_of(before->second)) {
        const Module* module = find(name);
        if (module == nullptr || taken_.contains(name) || module->tensors != layer.tensors) continue;
        take(layer, name);
        break;
      }
    }
  }

  std::vector<Module> layers_, modules_;
  std::string why_;
  std::map<std::string, std::string> matched_, taken_;
};

}  // namespace

std::string read_foreign_weights(const SafetensorsFile& file, const std::string& path, const Network& network,
                                 std::span<float> weights) {
  const std::vector<Parameter> tensors = network.parameters().tensors();
  std::string word = missing_name(file, "", network).empty() ? "" : common_word(file);
  const std::string missing = missing_name(file, word, network);
  const std::string count = counted(tensors.size(), "tensor");
  if (missing.empty()) {
    require_whole_layers(file, word, network, path);
    for (const Parameter& tensor : tensors)
      copy(file.require(word + tensor.name, "F32", shape_of(tensor)), tensor, weights);
    return count + " by name" + (word.empty() ? "" : fmt::format(" behind {}", quoted_text(word)));
  }
  const std::vector<Module> layers = modules_of(network);
  const auto modules =
      ShapeMatcher(layers, modules_of(file), fmt::format("{}: has no tensor {}", path, quoted_text(missing)))
          .match();
  std::vector<std::string> pairs;
  for (const Module& layer : layers)
    pairs.push_back(fmt::format("{} from {}", layer.name, quoted_text(modules.at(layer.name))));
  for (const Parameter& tensor : tensors) {
    const auto [layer, what] = split(tensor.name);
    copy(file.require(modules.at(layer) + "." + what, "F32", shape_of(tensor)), tensor, weights);
  }
  return fmt::format("{} by shape, since the names are others: {}", count, first_and_last(pairs));
}

// By name, what fits.

namespace {

bool fits(const TensorView* found, const Parameter& tensor) {
  return found != nullptr && found->dtype == "F32" && found->shape == shape_of(tensor);
}

std::size_t how_many_fit(const SafetensorsFile& file, const std::string& word,
                         const std::vector<Parameter>& tensors) {
  return static_cast<std::size_t>(std::ranges::count_if(
      tensors, [&](const Parameter& tensor) { return fits(file.find(word + tensor.name), tensor); }));
}

/// "[5, 50]", or "F16 [5, 50]" where it is not fp32.
std::string shown(const TensorView& tensor) {
  return fmt::format("{}[{}]", tensor.dtype == "F32" ? "" : tensor.dtype + " ",
                     fmt::join(tensor.shape, ", "));
}

}  // namespace

FittingWeights read_fitting_weights(const SafetensorsFile& file, const Network& network,
                                    std::span<float> weights) {
  const std::vector<Parameter> tensors = network.parameters().tensors();
  std::string word = common_word(file);
  if (how_many_fit(file, word, tensors) <= how_many_fit(file, "", tensors)) word.clear();
  FittingWeights result;
  for (const Parameter& tensor : tensors) {
    const TensorView* found = file.find(word + tensor.name);
    if (fits(found, tensor)) {
      copy(*found, tensor, weights);
      result.taken.push_back(tensor.name);
    } else {
      result.fresh.push_back(
          fmt::format("{} [{}]{}", tensor.name, fmt::join(tensor.shape, ", "),
                      found == nullptr ? "" : fmt::format(", of which the file has {}", shown(*found))));
    }
  }
  for (const TensorView& tensor : file.tensors()) {
    const std::string name = tensor.name.starts_with(word) ? tensor.name.substr(word.size()) : tensor.name;
    if (split(name).second != kCounter && std::ranges::find(tensors, name, &Parameter::name) == tensors.end())
      result.left_over.push_back(printable(tensor.name));
  }
  return result;
}

}  // namespace lockstep
