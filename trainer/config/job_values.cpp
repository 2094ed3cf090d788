// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Meaning of some keys' values: names of faults and strategies, and paths below the home directory.
#include "trainer/config/job_values.hpp"

#include "common/env.hpp"
#include "common/spelling.hpp"
#include "common/yaml.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace lockstep {

// A word, for some followed by an amount.

namespace {

using Kind = Fault::Kind;

struct AmountUnit {
  std::string_view name;
  double factor;
  double most;  ///< in this unit
};

struct FaultName {
  std::string_view word;
  Kind kind;
  std::string_view example;
  std::vector<AmountUnit> units = {};  ///< units of the amount; empty: it has none
  Fault::Pattern pattern = Fault::Pattern::kOne;
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
      {"flip-bits", Kind::kFlipBit, "flip-bits sums", {}, Fault::Pattern::kSeveral},
      {"stuck-bit", Kind::kFlipBit, "stuck-bit link", {}, Fault::Pattern::kStuck},
      {"stale-message", Kind::kStale, "stale-message"},
      {"swapped-message", Kind::kSwapped, "swapped-message"},
      {"wrong-forward", Kind::kWrongForward, "wrong-forward"},
      {"wrong-lane", Kind::kWrongLane, "wrong-lane"},
      {"nan", Kind::kNan, "nan"},
      {"desync", Kind::kDesync, "desync"}};
  return all;
}

/// "500ms" by the first unit that it ends with.
std::optional<double> parse_amount(std::string_view text, const std::vector<AmountUnit>& units) {
  for (const AmountUnit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_double(std::string(text.substr(0, text.size() - unit.name.size())));
    if (!number || !(*number > 0) || *number > unit.most) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

/// "weights", "gradient 1234:40": after "flip-bit ".
std::optional<Fault> parse_flip(std::string_view text, Fault::Pattern pattern) {
  static constexpr std::array<std::pair<std::string_view, Fault::Target>, 8> kTargets = {
      {{"weights", Fault::Target::kWeights},
       {"momentum", Fault::Target::kOptimizer},
       {"statistics", Fault::Target::kStatistics},
       {"gradient", Fault::Target::kGradient},
       {"data", Fault::Target::kData},
       {"sums", Fault::Target::kSums},
       {"link", Fault::Target::kLink},
       {"message", Fault::Target::kMessage}}};
  const std::string_view word = text.substr(0, text.find(' '));
  const auto* target = std::ranges::find(kTargets, word, [](const auto& entry) { return entry.first; });
  if (target == kTargets.end()) return std::nullopt;
  Fault fault{.kind = Kind::kFlipBit, .target = target->second, .pattern = pattern};
  if (word.size() == text.size()) return fault;
  const std::string_view place = text.substr(word.size() + 1);
  const std::size_t colon = std::min(place.find(':'), place.size());
  fault.element = parse_whole<std::uint64_t>(place.substr(0, colon));
  const auto bit = parse_whole<std::uint64_t>(place.substr(std::min(colon + 1, place.size())));
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
    return parse_flip(name.substr(word.size() + 1), found->pattern);
  if (found->units.empty())
    return word == name ? std::optional(Fault{.kind = found->kind, .pattern = found->pattern}) : std::nullopt;
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

// Homes by $HOME for oneself, by the user database for others.

namespace {

// Job files are read before there are threads.
// NOLINTBEGIN(concurrency-mt-unsafe)
std::optional<std::string> home_of(const std::string& user) {
  if (const char* home = std::getenv("HOME"); user.empty() && home != nullptr && *home != '\0') return home;
  const passwd* entry = user.empty() ? getpwuid(geteuid()) : getpwnam(user.c_str());
  if (entry == nullptr || entry->pw_dir == nullptr || *entry->pw_dir == '\0') return std::nullopt;
  return entry->pw_dir;
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

std::optional<std::string> expand_home(const std::string& path) {
  if (path.empty() || path.front() != '~') return path;
  const std::size_t slash = path.find('/');
  const auto home = home_of(path.substr(1, slash == path.npos ? path.npos : slash - 1));
  if (!home) return std::nullopt;
  return slash == path.npos ? *home : *home + path.substr(slash);
}

// The list.

const std::vector<StrategyKind>& strategy_kinds() {
  static const std::vector<StrategyKind> kinds = {
      {.name = "data", .keys = {{"replay_every_steps"}}},
      {.name = "pipeline",
       .one_thread = true,
       .shares_batches = false,
       .any_ranks = false,
       .keys = {{"stages"}, {"placement"}, {"schedule"}, {"replay_every_steps"}}},
      {.name = "hogwild",
       .same_bits = false,
       .one_thread = true,
       .one_host = true,
       .sums_whole_batches = false},
  };
  return kinds;
}

const StrategyKind& find_strategy_kind(std::string_view name) {
  return entry_of(strategy_kinds(), name, &StrategyKind::name);
}

}  // namespace lockstep
