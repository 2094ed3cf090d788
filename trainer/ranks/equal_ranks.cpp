// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One digest of all facts first; the facts themselves only where digests differ.
#include "trainer/ranks/equal_ranks.hpp"

#include "common/digest.hpp"
#include "common/installed.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace lockstep {

namespace {

using nlohmann::json;

constexpr int kKinds = static_cast<int>(FactKind::kData) + 1;

/// Every text before its length, so that no two lists of facts look alike.
Sha256Digest digest_of(const RankFacts& facts) {
  Sha256 hash;
  const auto add = [&](const std::string& text) {
    hash.update(std::as_bytes(std::span(text)));
    const auto size = std::to_string(text.size()) + ";";
    hash.update(std::as_bytes(std::span(size)));
  };
  for (const RankFact& fact : facts) {
    add(std::to_string(static_cast<int>(fact.kind)));
    add(fact.key);
    add(fact.value);
  }
  return hash.finish();
}

std::string to_text(const RankFacts& facts, const std::string& host) {
  json list = json::array();
  for (const RankFact& f : facts) list.push_back({static_cast<int>(f.kind), f.key, f.value, f.note});
  return json_text(json{{"host", host}, {"facts", list}});
}

RankFacts facts_of(const json& message) {
  RankFacts facts;
  for (const json& f : message.at("facts")) {
    const int kind = std::clamp(f.at(0).get<int>(), 0, kKinds - 1);
    facts.push_back({static_cast<FactKind>(kind), f.at(1), f.at(2), f.at(3)});
  }
  return facts;
}

}  // namespace

void expect_equal_ranks(Communicator& comm, const RankFacts& mine) {
  const auto digests = gather(comm, digest_of(mine));
  if (std::ranges::count(digests, digests.front()) == comm.size()) return;
  std::vector<RankFacts> facts;
  std::vector<std::string> hosts;
  for (const std::string& text : gather_text(comm, to_text(mine, comm.host()))) {
    const json message = parse_json(text);
    facts.push_back(facts_of(message));
    hosts.push_back(message.at("host"));
  }
  throw rank_difference(facts, hosts);
}

// Differences between ranks in words.

namespace {

constexpr std::size_t kMostValues = 4;    // shown for one key
constexpr std::size_t kMostHosts = 3;     // named for one group of ranks
constexpr std::size_t kMostBytes = 120;   // shown of one value
constexpr std::size_t kBytesBefore = 40;  // before the first that differs
constexpr const char* kMissing = "not there";

/// The ranks that have one value.
struct RanksOfValue {
  std::string value, note;
  std::vector<int> ranks;
};

const RankFact* find(const RankFacts& facts, FactKind kind, const std::string& key) {
  const auto found =
      std::ranges::find_if(facts, [&](const RankFact& f) { return f.kind == kind && f.key == key; });
  return found == facts.end() ? nullptr : &*found;
}

/// By value, in the order of each group's first rank.
std::vector<RanksOfValue> group(const std::vector<RankFacts>& facts, FactKind kind, const std::string& key) {
  std::vector<RanksOfValue> groups;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const RankFact* fact = find(facts[rank], kind, key);
    const std::string& value = fact != nullptr ? fact->value : kMissing;
    auto at = std::ranges::find(groups, value, &RanksOfValue::value);
    if (at == groups.end())
      at = groups.insert(at, {.value = value, .note = fact != nullptr ? fact->note : "", .ranks = {}});
    at->ranks.push_back(static_cast<int>(rank));
  }
  return groups;
}

std::optional<std::string> line_of(std::string_view text, std::size_t number) {
  for (; number > 0; --number) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return std::string(text.substr(0, text.find('\n')));
}

/// Reduces long texts to the first line that differs. @returns its number from 1; 0: they are of one
/// line
std::size_t keep_differing_line(std::vector<RanksOfValue>& groups) {
  const auto many_lines = [](const RanksOfValue& g) { return g.value.find('\n') != std::string::npos; };
  if (std::ranges::none_of(groups, many_lines)) return 0;
  for (std::size_t line = 0;; ++line) {
    const auto first = line_of(groups[0].value, line);
    if (std::ranges::all_of(groups, [&](const RanksOfValue& g) { return line_of(g.value, line) == first; }))
      continue;
    for (RanksOfValue& g : groups) {
      g.value = line_of(g.value, line).value_or("nothing");
      g.value.erase(0, g.value.find_first_not_of(' '));
    }
    return line + 1;
  }
}

/// Cuts the beginning that long texts have in common, beyond which nothing would be shown of them.
void keep_differing_part(std::vector<RanksOfValue>& groups) {
  std::size_t same = groups[0].value.size();
  for (const RanksOfValue& g : groups) {
    const auto first = std::ranges::mismatch(groups[0].value, g.value).in1 - groups[0].value.begin();
    same = std::min(same, static_cast<std::size_t>(first));
  }
  if (same < kMostBytes) return;
  const std::size_t begin = begin_of_character(groups[0].value, same - kBytesBefore);
  for (RanksOfValue& g : groups) g.value.replace(0, begin, "...");
}

std::string shown(const RanksOfValue& g) {
  std::string text = g.value.empty() ? "''" : g.value;
  if (is_digest(text)) text.resize(16);
  if (text.size() > kMostBytes) text = text.substr(0, begin_of_character(text, kMostBytes)) + "...";
  return g.note.empty() ? text : fmt::format("{} ({})", text, g.note);
}

/// "ranks 0, 2-12"; with their hosts where there are several.
std::string named(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  std::string text = list_of("rank", ranks);
  if (std::ranges::count(hosts, hosts[0]) == std::ssize(hosts)) return text;
  std::set<std::string> names;
  for (const int rank : ranks) names.insert(at(hosts, rank));
  if (names.size() > kMostHosts) return fmt::format("{} ({} hosts)", text, names.size());
  return fmt::format("{} ({})", text, fmt::join(names, ", "));
}

std::string describe_key(const std::string& key, std::vector<RanksOfValue> groups,
                         const std::vector<std::string>& hosts) {
  const std::size_t line = keep_differing_line(groups);
  keep_differing_part(groups);
  std::vector<std::string> parts;
  for (const RanksOfValue& g : std::span(groups).first(std::min(groups.size(), kMostValues)))
    parts.push_back(fmt::format("{} on {}", shown(g), named(g.ranks, hosts)));
  if (groups.size() > kMostValues) parts.push_back(counted(groups.size() - kMostValues, "other value"));
  const std::string place = line == 0 ? key : fmt::format("{} line {}", key, line);
  return fmt::format("{} is {}", place, fmt::join(parts, ", but "));
}

/// Exit code and advice if ranks differ in such a fact; {} is the script that fetches the data.
struct DifferenceRow {
  ExitCode code;
  const char* advice;
};
/// By FactKind.
constexpr std::array<DifferenceRow, kKinds> kDifferences{{
    {ExitCode::kDeviceUnavailable, "install the same build of lockstep on every host and start that one"},
    {ExitCode::kDeviceUnavailable,
     "make every host load the same version of it (look at LD_LIBRARY_PATH and modules)"},
    {ExitCode::kDeviceUnavailable,
     "leave out the hosts that cannot compute the same bits, or set parallel.determinism=off"},
    {ExitCode::kUsage, "start every rank with the same command line and job file"},
    {ExitCode::kUsage, "give every rank the same model file"},
    {ExitCode::kDataDamaged,
     "name one checkpoint, such as RUN/checkpoints/step-00001180, that all hosts see"},
    {ExitCode::kDataDamaged,
     "give every host the same files; {} fetches them, data.root or LOCKSTEP_DATA says where they are"},
}};

/// Keys in the order in which ranks name them, kinds in theirs.
std::vector<std::pair<FactKind, std::string>> all_keys(const std::vector<RankFacts>& facts) {
  std::vector<std::pair<FactKind, std::string>> keys;
  for (const RankFacts& mine : facts)
    for (const RankFact& fact : mine)
      if (const std::pair key(fact.kind, fact.key); std::ranges::find(keys, key) == keys.end())
        keys.push_back(key);
  std::ranges::stable_sort(keys, {}, &std::pair<FactKind, std::string>::first);
  return keys;
}

}  // namespace

AgreedError rank_difference(const std::vector<RankFacts>& facts, const std::vector<std::string>& hosts) {
  const DifferenceRow* first = nullptr;
  std::vector<std::string> lines;
  for (const auto& [kind, key] : all_keys(facts)) {
    auto groups = group(facts, kind, key);
    if (groups.size() == 1) continue;
    if (first == nullptr) first = &at(kDifferences, static_cast<int>(kind));
    lines.push_back(describe_key(key, std::move(groups), hosts));
  }
  LOCKSTEP_CHECK(first != nullptr);
  return {first->code,
          fmt::format("the ranks differ, so nothing was started: {}; {}", fmt::join(lines, "; "),
                      fmt::format(fmt::runtime(first->advice), script_command("get-data"))),
          0};
}

}  // namespace lockstep
