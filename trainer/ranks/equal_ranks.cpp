// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One digest of all facts first; the facts themselves only where digests differ.
#include "trainer/ranks/equal_ranks.hpp"

#include "comm/agreement.hpp"
#include "comm/gather.hpp"
#include "common/sha256.hpp"
#include "common/text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kKinds = static_cast<int>(FactKind::kData) + 1;

/// Every text in front of its length, so that no two lists of facts look alike.
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

bool all_equal(Communicator& comm, const Sha256Digest& mine) {
  const auto all = gather(comm, mine);
  return std::ranges::count(all, mine) == std::ssize(all);
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
  if (all_equal(comm, digest_of(mine))) return;
  std::vector<RankFacts> facts;
  std::vector<std::string> hosts;
  for (const std::string& text : gather_text(comm, to_text(mine, comm.host()))) {
    const json message = parse_json(text);
    facts.push_back(facts_of(message));
    hosts.push_back(message.at("host"));
  }
  const RankDifference difference = describe_difference(facts, hosts);
  throw AgreedError(exit_code_of(difference.kind), difference.message, 0);
}

}  // namespace lockstep
