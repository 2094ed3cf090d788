// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A word, for some with an amount behind it.
#include "trainer/config/fault_name.hpp"

#include "common/yaml/scalar.hpp"

#include <algorithm>
#include <array>
#include <string>

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

}  // namespace

std::optional<Fault> parse_fault(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(' '));
  const auto found = std::ranges::find(names(), word, &FaultName::word);
  if (found == names().end()) return std::nullopt;
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
