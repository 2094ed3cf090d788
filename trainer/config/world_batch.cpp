// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Multiplies, and refuses a global batch that says something else; what a batch costs and a job promises about ranks, in words.
#include "trainer/config/world_batch.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/config/strategy_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
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
          .same_weights = strategy.same_bits && job.parallel.determinism == Determinism::kWorld};
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

std::vector<std::string> batch_remarks(const Job& job, std::int64_t train_samples, bool on_gpu) {
  constexpr std::int64_t kColumns = 16;  // that the CPU's kernels take at once
  std::vector<std::string> remarks;
  const std::int64_t asked = job.data.global_batch, batch = std::min(asked, train_samples);
  if (asked > train_samples) {
    const bool scales = job.train.optimizer.lr_scaling.rule != LrScalingSection().rule;
    remarks.push_back(fmt::format(
        "data.global_batch {} is more than the {} training samples: every step takes all of them{}",
        with_thousands(asked), with_thousands(train_samples),
        scales ? fmt::format("; the learning rate is scaled for {}", with_thousands(asked)) : ""));
  }
  const bool cut = job.parallel.grain <= batch;
  const std::int64_t samples = cut ? job.parallel.grain : batch;
  const std::int64_t padded = (samples + kColumns - 1) / kColumns * kColumns;
  if (!on_gpu && padded != samples) {
    remarks.push_back(
        fmt::format("{} of {} are padded to {}, a multiple of {}: {:.0f} % of the arithmetic is for nothing; "
                    "{}={} needs none",
                    cut ? "grains" : "batches", samples, padded, kColumns,
                    100 * static_cast<double>(padded - samples) / static_cast<double>(padded),
                    cut ? "parallel.grain" : "data.global_batch", padded));
  }
  return remarks;
}

}  // namespace lockstep
