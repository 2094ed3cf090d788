// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A word, for some with an amount behind it.
#include "trainer/config/fault_name.hpp"

#include "common/yaml/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

using Kind = Fault::Kind;

struct Unit {
  std::string_view name;
  double factor;
  double most;  ///< in this unit
};

struct FaultName {
  std::string_view word;
  Kind kind;
  std::string_view example;
  std::vector<Unit> units = {};  ///< of the amount; none: there is no amount
};

const std::vector<FaultName>& names() {
  static const std::vector<FaultName> all = {
      {"die", Kind::kDie, "die"},
      {"stop", Kind::kStop, "stop"},
      {"delay", Kind::kDelay, "delay 3s", {{"ms", 1e-3, 1e9}, {"s", 1, 1e6}}},
      {"slow", Kind::kSlow, "slow 10%", {{"%", 1e-2, 1e4}}},
      {"busy", Kind::kBusy, "busy 10%", {{"%", 1e-2, 1e4}}},
      {"drop-network", Kind::kDropNetwork, "drop-network"},
      {"flip-bit", Kind::kFlipBit, "flip-bit"},
      {"nan", Kind::kNan, "nan"},
      {"desync", Kind::kDesync, "desync"}};
  return all;
}

/// "500ms" by the first unit that it ends with.
std::optional<double> parse_amount(std::string_view text, const std::vector<Unit>& units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_double(std::string(text.substr(0, text.size() - unit.name.size())));
    if (!number || !(*number > 0) || *number > unit.most) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// "weights", "gradient 1234:40": behind "flip-bit ".
std::optional<Fault> parse_flip(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Fault::Target>, 4> kTargets = {
      {{"weights", Fault::Target::kWeights},
       {"momentum", Fault::Target::kOptimizer},
       {"gradient", Fault::Target::kGradient},
       {"data", Fault::Target::kData}}};
  const std::string_view word = text.substr(0, text.find(' '));
  const auto* target = std::ranges::find(kTargets, word, [](const auto& entry) { return entry.first; });
  if (target == kTargets.end()) return std::nullopt;
  Fault fault{.kind = Kind::kFlipBit, .target = target->second};
  if (word.size() == text.size()) return fault;
  const std::string_view place = text.substr(word.size() + 1);
  const std::size_t colon = std::min(place.find(':'), place.size());
  fault.element = parse_number(place.substr(0, colon));
  const auto bit = parse_number(place.substr(std::min(colon + 1, place.size())));
  if (!fault.element || !bit || *bit > 63) return std::nullopt;
  fault.bit = static_cast<unsigned>(*bit);
  return fault;
}

}  // namespace

std::optional<Fault> parse_fault(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(' '));
  const auto found = std::ranges::find(names(), word, &FaultName::word);
  if (found == names().end()) return std::nullopt;
  if (found->kind == Kind::kFlipBit && word.size() != name.size())
    return parse_flip(name.substr(word.size() + 1));
  if (found->units.empty()) return word == name ? std::optional(Fault{found->kind}) : std::nullopt;
  if (word.size() == name.size()) return std::nullopt;
  const auto amount = parse_amount(name.substr(word.size() + 1), found->units);
  if (!amount) return std::nullopt;
  return Fault{found->kind, *amount};
}

std::vector<std::string_view> fault_names() {
  std::vector<std::string_view> examples{kNoFault};
  for (const FaultName& name : names()) examples.push_back(name.example);
  return examples;
}

}  // namespace lockstep
