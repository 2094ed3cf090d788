// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// LayerOptions: from YAML scalars to checked numbers.
#include "models/layer_options.hpp"

#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// Shows the file's content, for a message.
std::string shown(const YAML::Node& node) {
  if (node.IsScalar()) return quoted_text(node.Scalar());
  if (node.IsMap()) return "a map";
  return node.IsSequence() ? "a list" : "nothing";
}

/// "; with an output of 4x26x26 there are conv1, relu1": the last few.
std::string what_fits(std::vector<std::string_view> names, const std::string& wanted,
                      const std::string& such) {
  const std::string hint = did_you_mean(wanted, names);
  if (such.empty()) return hint;
  if (names.empty()) return fmt::format("; there is none with an output of {}", such);
  constexpr std::size_t kMost = 8;
  if (names.size() > kMost) names.erase(names.begin(), names.end() - kMost);
  return fmt::format("; with an output of {} there {} {}{}", such, names.size() == 1 ? "is" : "are",
                     fmt::join(names, ", "), hint);
}

/// Remark on a number that is refused for what it is as fp32.
std::string remark(const YAML::Node& node) {
  return node.IsScalar() ? fp32_hint(node.Scalar()) : "";
}

}  // namespace

LayerOptions::LayerOptions(Origin origin, const YAML::Node& options, std::string_view main_key)
    : origin_(std::move(origin)), options_(options), main_key_(main_key) {}

int LayerOptions::integer(const std::string& key, int least, int most, std::optional<int> fallback) const {
  const YAML::Node node = fallback ? find(key) : require(key);
  return node.IsDefined() ? to_integer(node, key, least, most) : *fallback;
}

float LayerOptions::probability(const std::string& key, float fallback) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) return fallback;
  const std::optional<double> value = node.IsScalar() ? parse_double(node.Scalar()) : std::nullopt;
  const float result = static_cast<float>(value.value_or(-1));
  if (!value || *value < 0 || result >= 1 || (result == 0 && *value > 0))
    fail(node.Mark(),
         fmt::format("{} must be a number from 0 to below 1, not {}{}", key, shown(node), remark(node)));
  return result;
}

double LayerOptions::number(const std::string& key, const Range& range, double fallback) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) return fallback;
  const std::optional<double> value = node.IsScalar() ? parse_double(node.Scalar()) : std::nullopt;
  const bool kept = value && (*value == 0 || static_cast<float>(*value) != 0);  // 1e-50 is 0 as fp32
  if (kept && *value >= range.least && *value <= range.most) return *value;
  fail(node.Mark(), fmt::format("{} must be a number from {} to {}, not {}{}", key, range.least, range.most,
                                shown(node), remark(node)));
}

bool LayerOptions::yes_or_no(const std::string& key, bool fallback) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) return fallback;
  const std::optional<bool> value = node.IsScalar() ? parse_bool(node.Scalar()) : std::nullopt;
  if (!value) fail(node.Mark(), fmt::format("{} must be true or false, not {}", key, shown(node)));
  return *value;
}

std::size_t LayerOptions::choice(const std::string& key, std::span<const std::string_view> choices) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) return 0;
  const auto found = std::ranges::find(choices, node.IsScalar() ? node.Scalar() : "");
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  const std::string hint = node.IsScalar() ? did_you_mean(node.Scalar(), choices) : "";
  fail(node.Mark(),
       fmt::format("{} must be {}, not {}{}", key, fmt::join(choices, " or "), shown(node), hint));
}

int LayerOptions::outputs() const {
  const YAML::Node node = require("out");
  if (node.IsScalar() && node.Scalar() == "classes") return origin_.classes;
  return to_integer(node, "out", 1, kMaxOutputs);
}

KernelSize LayerOptions::kernel() const {
  const YAML::Node node = require("kernel");
  if (!node.IsSequence()) {
    const int size = to_integer(node, "kernel", 1, kMaxKernel);
    return {size, size};
  }
  if (node.size() != 2)
    fail(node.Mark(),
         fmt::format("kernel must be one number or [height, width], not a list of {}", node.size()));
  return {to_integer(node[0], "kernel height", 1, kMaxKernel),
          to_integer(node[1], "kernel width", 1, kMaxKernel)};
}

int LayerOptions::common_divisor(const std::string& key, int inputs, int outputs) const {
  const int value = integer(key, 1, kMaxOutputs, 1);
  if (inputs % value == 0 && outputs % value == 0) return value;
  fail_shape(find(key).Mark(), fmt::format("{} groups do not divide {} into {}; use a divisor of {}", value,
                                           counted(inputs, "channel"), outputs, std::gcd(inputs, outputs)));
}

EarlierLayer LayerOptions::earlier_layer(const ImageShape& input,
                                         const std::function<bool(const ImageShape&)>& fits,
                                         const std::string& such) const {
  const YAML::Node node = require("from");
  if (!node.IsScalar())
    fail(node.Mark(), fmt::format("from must be the name of an earlier layer, not {}", shown(node)));
  const std::string& wanted = node.Scalar();
  std::vector<std::string_view> fitting;
  for (std::size_t i = 0; i < origin_.earlier.size(); ++i) {
    const Layer& layer = *origin_.earlier[i];
    if (fits(layer.output())) {
      if (layer.name() == wanted) return {wanted, i, layer.output()};
      fitting.emplace_back(layer.name());
    }
  }
  const std::string help = what_fits(fitting, wanted, such);
  for (const auto& layer : origin_.earlier) {
    if (layer->name() != wanted) continue;
    fail_shape(node.Mark(), fmt::format("from: {} has an output of {}, and here come {}{}", wanted,
                                        to_string(layer->output()), to_string(input), help));
  }
  fail(node.Mark(), fmt::format("from: no layer before this one is called {}{}", quoted_text(wanted), help));
}

void LayerOptions::require_fit(const KernelSize& kernel, int padding, const ImageShape& input,
                               int dilation) const {
  const int height = (kernel.height - 1) * dilation + 1, width = (kernel.width - 1) * dilation + 1;
  if (height <= input.height + 2 * padding && width <= input.width + 2 * padding) return;
  fail_shape(
      fmt::format("kernel {}x{}{} does not fit an input of {}x{}x{}{}; use a smaller kernel or more padding",
                  kernel.height, kernel.width,
                  dilation == 1 ? "" : fmt::format(" with dilation {}", dilation), input.channels,
                  input.height, input.width, padding == 0 ? "" : fmt::format(" with padding {}", padding)));
}

void LayerOptions::require_weights(std::uint64_t count) const {
  if (count <= kMaxParameters) return;
  fail_shape(fmt::format("{} weights are more than a network may have ({}); make 'out' smaller", count,
                         kMaxParameters));
}

void LayerOptions::fail_shape(const std::string& message) const {
  fail_shape(origin_.mark, message);
}

void LayerOptions::fail_shape(const YAML::Mark& mark, const std::string& message) const {
  const std::string text = fmt::format("layer {}: {}", origin_.layer, message);
  throw ShapeError(config_error(origin_.file, mark, text).what());
}

YAML::Node LayerOptions::find(const std::string& key) const {
  if (options_.IsMap()) return std::as_const(options_)[key];
  if (key == main_key_ && !options_.IsNull()) return options_;
  return YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node LayerOptions::require(const std::string& key) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) fail(origin_.mark, fmt::format("'{}' is missing; write {{{}: ...}}", key, key));
  return node;
}

int LayerOptions::to_integer(const YAML::Node& node, const std::string& key, int least, int most) const {
  const std::optional<std::int64_t> value = node.IsScalar() ? parse_int64(node.Scalar()) : std::nullopt;
  if (!value || *value < least || *value > most) {
    const std::string range =
        least == most ? fmt::format("{}", least) : fmt::format("from {} to {}", least, most);
    const bool takes_classes = key == "out" && most == kMaxOutputs;
    fail(node.Mark(), fmt::format("{} must be a whole number {}{}, not {}", key, range,
                                  takes_classes ? " or 'classes'" : "", shown(node)));
  }
  return static_cast<int>(*value);
}

void LayerOptions::fail(const YAML::Mark& mark, const std::string& message) const {
  throw config_error(origin_.file, mark, fmt::format("layer {}: {}", origin_.layer, message));
}

}  // namespace lockstep
