// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A computation is identified by a digest of all that decides its weights; the table has its result.
#include "trainer/checkpoint/published_hash.hpp"

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "kernels/sum_cuts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <span>
#include <sstream>

namespace lockstep {
namespace {

std::string value_of(const std::map<std::string, std::string>& entries, const std::string& key) {
  const auto found = entries.find(key);
  return found == entries.end() ? "" : found->second;
}

/// Lengths first, so that no value can look like the next key.
void add_entries(std::string& text, const char* part, const std::map<std::string, std::string>& entries) {
  for (const auto& [key, value] : entries)
    text += fmt::format("{} {} {}:{}\n", part, key, value.size(), value);
}

std::optional<PublishedHash> parse_row(const std::string& row) {
  PublishedHash hash;
  std::string step;
  std::istringstream words(row);
  words >> hash.computation >> step >> hash.weights >> std::ws;
  std::getline(words, hash.what);
  hash.step = parse_whole<std::int64_t>(step).value_or(0);
  if (hash.step <= 0 || !is_digest(hash.computation) || !is_digest(hash.weights) || hash.what.empty())
    return std::nullopt;
  return hash;
}

}  // namespace

std::string computation_digest(const CheckpointFacts& facts) {
  if (value_of(facts.job, "parallel.determinism") != "world" || !facts.average.empty()) return "";
  const auto [version, since] = facts.arithmetic;
  if (version < kArithmeticVersion || since != 0) return "";
  if (value_of(facts.world, "kernels") == "vendor") return "";
  if (value_of(facts.job, "train.initial_weights") != "\"\"") return "";
  const std::string samples = value_of(facts.data, "train_samples_sha256");
  const std::string labels = value_of(facts.data, "train_labels_sha256");
  if (samples.empty() || labels.empty()) return "";
  auto job = facts.job;
  job.erase("model");  // a name or a path: facts.model has its meaning
  std::string text;
  add_entries(text, "job", job);
  add_entries(text, "model", facts.model);
  add_entries(text, "data", {{"samples", samples}, {"labels", labels}});
  if (version != kArithmeticVersion) add_entries(text, "arithmetic", {{"version", std::to_string(version)}});
  return hex(sha256(std::as_bytes(std::span(text))));
}

std::vector<PublishedHash> read_published_hashes(std::string_view text, const std::string& file) {
  std::vector<PublishedHash> table;
  std::istringstream lines{std::string(text)};
  std::string row;
  for (int line = 1; std::getline(lines, row); ++line) {
    if (row.find_first_not_of(' ') == row.npos || row.front() == '#') continue;
    auto hash = parse_row(row);
    if (!hash)
      throw DataError(fmt::format(
          "{}:{}: no row of published hashes (COMPUTATION STEP WEIGHTS what it is); bring the file back as "
          "it was",
          file, line));
    table.push_back(std::move(*hash));
  }
  return table;
}

std::vector<PublishedHash> published_hashes() {
  for (const auto& directory : shared_directories("launch/jobs")) {
    const std::string file = (directory / "hashes.txt").string();
    if (!Env::posix().exists(file)) continue;
    return read_published_hashes(as_text(Env::posix().read(file)), file);
  }
  return {};
}

std::optional<PublishedHash> find_published(const std::vector<PublishedHash>& table,
                                            const CheckpointFacts& facts) {
  const std::string computation = computation_digest(facts);
  if (computation.empty()) return std::nullopt;
  const auto found = std::ranges::find_if(table, [&](const PublishedHash& row) {
    return row.computation == computation && row.step == facts.step;
  });
  return found == table.end() ? std::nullopt : std::optional(*found);
}

PublishedComparison compare_with_published(const CheckpointFacts& facts, const std::string& weights_sha256) {
  std::optional<PublishedHash> published;
  try {
    published = find_published(published_hashes(), facts);
  } catch (const std::exception& error) {  // no reason for a finished run to fail
    return {.same = std::nullopt, .line = fmt::format("the published hash: not known: {}", error.what())};
  }
  if (!published) return {};
  const bool same = published->weights == weights_sha256;
  return {.same = same,
          .line = same ? fmt::format("the published hash: yes ({})", published->what)
                       : fmt::format("the published hash: no; {} comes to {}: this machine, its libraries or "
                                     "this program compute differently",
                                     published->what, published->weights)};
}

}  // namespace lockstep
