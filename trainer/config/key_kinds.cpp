// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kinds of keys that no template makes.
#include "trainer/config/key_kinds.hpp"

#include "common/printable.hpp"
#include "trainer/config/job_values.hpp"

#include <algorithm>
#include <array>

namespace lockstep::job_keys {
namespace {

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxChannels = 4096;

/// A text of one line.
/// @param accept  its value in the job, or nothing if it is not what is expected
Kind<std::string> text(std::string expected,
                       const std::function<std::optional<std::string>(const std::string&)>& accept,
                       bool may_be_empty = false) {
  const auto read = [=](const YAML::Node& node) -> std::optional<std::string> {
    if (!node.IsScalar() && !node.IsNull()) return std::nullopt;
    const std::string value = node.IsNull() ? "" : node.Scalar();
    if (value.empty() && !may_be_empty) return std::nullopt;
    if (value.size() > kMaxTextBytes || find_unprintable(value) ||
        value.find_first_of("\r\n\t") != value.npos)
      return std::nullopt;
    return accept(value);
  };
  return {.expected = std::move(expected), .read = read, .write = format_yaml_text};
}

/// " (did you mean 'cuda:1'?)" for "gpu:1" and the like, or a misspelt name; "" for others.
std::string device_hint(const std::string& text) {
  for (const std::string_view gpu : {"gpu", "GPU", "nvidia", "cuda"}) {
    if (!text.starts_with(gpu)) continue;
    std::string index = text.substr(gpu.size());
    if (index.starts_with(':')) index.erase(0, 1);
    const std::string meant = index.empty() ? "cuda" : "cuda:" + index;
    if (parse_device_name(meant)) return fmt::format(" (did you mean '{}'?)", meant);
  }
  constexpr std::array<std::string_view, 4> kNames = {"auto", "cpu", "cuda", "emulated"};
  return did_you_mean(text, kNames);
}

/// `value`, if that is so.
std::optional<std::string> only_if(bool accepted, const std::string& value) {
  return accepted ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string shown(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsNull()) return "nothing";
  if (node.IsScalar()) return quoted_text(node.Scalar()) + (node.Tag() == "!" ? " in quotes" : "");
  constexpr std::size_t kLongest = 60;
  std::vector<std::string> values;
  for (const auto& entry : node) {
    if (!entry.IsScalar() || entry.Tag() == "!") return "a list";
    const std::string& value = entry.Scalar();
    values.push_back(value.find(',') == value.npos ? value : quoted_text(value));
  }
  const std::string list = fmt::format("[{}]", fmt::join(values, ", "));
  return list.size() > kLongest ? "a list" : list;
}

Kind<std::int64_t> whole_or_auto(std::int64_t high, std::int64_t automatic) {
  auto kind = or_auto(whole(0, high), automatic);
  kind.expected = "auto or " + kind.expected;
  return kind;
}

Kind<double> real(RealRange range) {
  const auto read = [=](const YAML::Node& node) {
    const auto number = parse_double(plain_text(node));
    return number && range.holds(*number) ? number : std::nullopt;
  };
  return {.expected = range.describe(), .read = read, .write = format_double, .hint = fp32_hint};
}

Kind<bool> yes_or_no() {
  return {.expected = "true or false",
          .read = [](const YAML::Node& node) { return parse_bool(plain_text(node)); },
          .write = [](bool value) { return value ? "true" : "false"; }};
}

Kind<PictureColour> colour() {
  const auto flag = yes_or_no();
  const auto read = [=](const YAML::Node& node) -> std::optional<PictureColour> {
    const auto value = flag.read(node);
    return value ? std::optional(*value ? PictureColour::kRgb : PictureColour::kGrey) : std::nullopt;
  };
  return {.expected = flag.expected, .read = read, .write = [=](PictureColour value) {
            return flag.write(value == PictureColour::kRgb);
          }};
}

Kind<std::string> one_of(const std::vector<std::string_view>& words) {
  auto kind = text(fmt::format("one of {}", fmt::join(words, ", ")), [words](const std::string& word) {
    return only_if(std::ranges::find(words, word) != words.end(), word);
  });
  kind.choices = words;
  return kind;
}

Kind<std::vector<double>> channel_numbers(RealRange range) {
  const auto one = real(range);
  const auto list = or_auto(
      list_of(one, fmt::format("auto, {}, or a list of such numbers, one for each channel", one.expected), 1,
              kMaxChannels));
  auto kind = list;
  kind.read = [=](const YAML::Node& node) {
    const auto number = one.read(node);
    return number ? std::vector{*number} : list.read(node);
  };
  kind.write = [=](const std::vector<double>& values) {
    return values.size() == 1 ? one.write(values.front()) : list.write(values);
  };
  return kind;
}

Kind<std::string> path(std::string expected, bool may_be_empty) {
  return text(std::move(expected), expand_home, may_be_empty);
}

Kind<std::string> word(std::string expected) {
  return text(std::move(expected), [](const std::string& value) { return std::optional(value); });
}

Kind<std::size_t> byte_count() {
  constexpr std::size_t kLeast = 4, kMost = std::size_t{1} << 30;
  const auto read = [=](const YAML::Node& node) -> std::optional<std::size_t> {
    const auto bytes = parse_byte_count(plain_text(node));
    return bytes && *bytes >= kLeast && *bytes <= kMost ? bytes : std::nullopt;
  };
  const auto write = [](std::size_t value) {
    if (value % (std::size_t{1} << 20) == 0) return fmt::format("{}MiB", value >> 20);
    if (value % (std::size_t{1} << 10) == 0) return fmt::format("{}KiB", value >> 10);
    return fmt::format("{}", value);
  };
  return or_auto(Kind<std::size_t>{.expected = "auto or a size from 4 to 1GiB such as 65536, 64KiB or 1MiB",
                                   .read = read,
                                   .write = write});
}

Kind<ClassWeights> class_weights() {
  constexpr double kLeast = 1e-6, kMost = 1e6;  // their ratios stay far within fp32
  const auto range = real({0, kMost});
  auto one = range;
  one.read = [=](const YAML::Node& node) {
    const auto weight = range.read(node);
    return weight && (*weight == 0 || *weight >= kLeast) ? weight : std::nullopt;
  };
  const auto list = list_of(one, "");
  const auto read = [=](const YAML::Node& node) -> std::optional<ClassWeights> {
    if (node.IsScalar() && node.Scalar() == "none") return ClassWeights();
    if (node.IsScalar() && node.Scalar() == "balanced") return ClassWeights{.balanced = true};
    auto numbers = list.read(node);
    if (!numbers || std::ranges::none_of(*numbers, [](double weight) { return weight > 0; }))
      return std::nullopt;
    return ClassWeights{.numbers = *std::move(numbers)};
  };
  const auto write = [=](const ClassWeights& weights) {
    if (weights.balanced) return std::string("balanced");
    return weights.numbers.empty() ? "none" : list.write(weights.numbers);
  };
  return {
      .expected =
          "none, balanced, or a list of one number for each class, each 0 or from 1e-6 to 1e6 and not all "
          "0, such as [1, 2.5]",
      .read = read,
      .write = write};
}

Kind<HoldOut> samples_or_share(std::int64_t most) {
  const auto read = [=](const YAML::Node& node) {
    const auto value = parse_hold_out(plain_text(node));
    return value && value->samples <= most ? value : std::nullopt;
  };
  return {.expected = fmt::format(
              "a whole number from 0 to {}, a share from 1e-9 on, below 1, such as 0.1, or files", most),
          .read = read,
          .write = [](const HoldOut& value) { return to_string(value); }};
}

Kind<PictureSize> picture_size() {
  return or_auto(Kind<PictureSize>{
      .expected = "auto, a number of pixels such as 64, or WIDTHxHEIGHT, of at most 4096 each",
      .read = [](const YAML::Node& node) { return parse_picture_size(plain_text(node)); },
      .write = [](const PictureSize& size) { return fmt::format("{}x{}", size.width, size.height); }});
}

Kind<std::string> device() {
  auto kind = text(std::string(kDeviceNames), [](const std::string& name) {
    return only_if(parse_device_name(name).has_value(), name);
  });
  kind.hint = device_hint;
  return kind;
}

Kind<std::string> fault() {
  auto kind = text(one_of(fault_names()).expected, [](const std::string& name) {
    return only_if(name == kNoFault || parse_fault(name), name);
  });
  kind.choices = fault_names();
  return kind;
}

Kind<StagesSection> stages() {
  const auto count = whole(1, 4096);
  const auto lists = list_of(list_of(word(""), ""), "");
  const auto read = [=](const YAML::Node& node) -> std::optional<StagesSection> {
    if (const auto number = count.read(node)) return StagesSection{.count = *number, .layers = {}};
    auto layers = lists.read(node);
    if (!layers) return std::nullopt;
    return StagesSection{.count = 0, .layers = *std::move(layers)};
  };
  const auto write = [=](const StagesSection& section) {
    return section.count == 0 ? lists.write(section.layers) : count.write(section.count);
  };
  return or_auto(Kind<StagesSection>{
      .expected =
          fmt::format("auto, {}, or a list of stages, each a list of layers such as [[conv1, relu1], [fc1]]",
                      count.expected),
      .read = read,
      .write = write});
}

Kind<std::string> pattern() {
  constexpr std::size_t kLongest = 200;
  return text("", [](const std::string& name) { return only_if(name.size() <= kLongest, name); });
}

Kind<std::vector<std::string>> patterns() {
  const auto one = pattern();
  const auto list =
      list_of(one, "a list of names, with * for any characters and ? for one, such as [conv*, fc1.bias]", 0,
              kMostPatterns);
  auto kind = list;
  kind.read = [=](const YAML::Node& node) {
    const auto name = one.read(node);
    return name ? std::vector{*name} : list.read(node);
  };
  kind.hint = {};
  return kind;
}

Kind<TracedSteps> steps() {
  const auto read = [](const YAML::Node& node) -> std::optional<TracedSteps> {
    const std::string text = node.IsScalar() ? node.Scalar() : "";
    if (text == "off") return TracedSteps();
    const std::size_t dots = text.find("..");
    if (dots == text.npos) return std::nullopt;
    const auto first = parse_int64(text.substr(0, dots)), last = parse_int64(text.substr(dots + 2));
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (!first || !last || *first < 1 || *last < 1 || *first > kMost || *last > kMost) return std::nullopt;
    return TracedSteps{*first, *last};
  };
  const auto write = [](const TracedSteps& range) {
    return range.is_given() ? fmt::format("{}..{}", range.first, range.last) : format_yaml_text("off");
  };
  return {.expected = "off, or the first and the last step, counted from 1, such as 100..110",
          .read = read,
          .write = write};
}

}  // namespace lockstep::job_keys
