// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Multiplies, and refuses a global batch that says something else; what a job promises about ranks, in words.
#include "trainer/config/world_batch.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/config/strategy_kinds.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr std::int64_t kLargestBatch = 1'000'000'000;  // as in the schema

/// "job.yaml:3:9: " of a key that was given, or nothing.
std::string place_of(const Job& job, std::string_view key) {
  const auto place = job.places.find(key);
  return place == job.places.end() ? "" : place->second;
}

}  // namespace

Job for_ranks(Job job, int ranks) {
  DataSection& data = job.data;
  if (data.per_rank_batch == 0) return job;
  const std::int64_t wanted = data.per_rank_batch * ranks;
  const std::string product = fmt::format("{} with data.per_rank_batch {} {} {}", counted(ranks, "rank"),
                                          data.per_rank_batch, ranks == 1 ? "makes" : "make", wanted);
  if (wanted > kLargestBatch) {
    throw ConfigError(fmt::format("{}data.per_rank_batch: {}, and a global batch has {} samples at most",
                                  place_of(job, "data.per_rank_batch"), product, kLargestBatch));
  }
  if (job.places.contains("data.global_batch") && data.global_batch != wanted) {
    throw ConfigError(
        fmt::format("{}data.global_batch: {}, but {}; remove data.global_batch, or set data.per_rank_batch=0 "
                    "to have it count",
                    place_of(job, "data.global_batch"), data.global_batch, product));
  }
  data.global_batch = wanted;
  return job;
}

RestartRule restart_rule(const Job& job) {
  const StrategyKind& strategy = find_strategy_kind(job.parallel.strategy);
  return {.any_ranks = strategy.any_ranks && job.data.per_rank_batch == 0,
          .one_host = strategy.one_host,
          .same_weights = strategy.same_bits && job.parallel.determinism == "world"};
}

std::string restart_advice(const Job& job, int ranks) {
  const RestartRule rule = restart_rule(job);
  std::string text = "run the same command again: it goes on from the last checkpoint, on ";
  if (rule.any_ranks) {
    text += rule.one_host ? "any number of ranks of one host" : "any number of ranks";
  } else if (job.data.per_rank_batch > 0) {
    text += fmt::format("{} ranks as before (data.per_rank_batch)", ranks);
  } else {
    text += fmt::format("{} ranks as before, or as many as its stages come out on", ranks);
  }
  return text + (rule.same_weights ? "" : "; the weights will be others than without this loss");
}

}  // namespace lockstep
