// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Multiplies, and refuses a global batch that says something else.
#include "trainer/config/world_batch.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"

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

}  // namespace lockstep
