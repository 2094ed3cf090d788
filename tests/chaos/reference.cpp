// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/reference.hpp"

#include "tests/chaos/violation.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

namespace lockstep::chaos {
namespace {

void compare_bytes(const std::string& name, const std::string& mine, const std::string& reference,
                   std::vector<std::string>* differences) {
  if (mine == reference) return;
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), reference.begin(), reference.end());
  differences->push_back(fmt::format("{}: first differs at byte {} ({} bytes, reference {})", name,
                                     here - mine.begin(), mine.size(), reference.size()));
}

void compare_metrics(const std::vector<nlohmann::json>& mine, const std::vector<nlohmann::json>& reference,
                     std::vector<std::string>* differences) {
  if (mine == reference) return;
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), reference.begin(), reference.end());
  differences->push_back(fmt::format("metrics.jsonl: first differs in line {}: {}, reference {}",
                                     here - mine.begin() + 1, here == mine.end() ? "(none)" : here->dump(),
                                     there == reference.end() ? "(none)" : there->dump()));
}

/// Lines of which a start has said that some of them were changed: it kept them aside.
std::vector<nlohmann::json> lines_kept_aside(const std::string& run_dir) {
  std::vector<nlohmann::json> lines;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir)) {
    if (!entry.path().filename().string().starts_with("metrics.jsonl.damaged")) continue;
    std::istringstream text(testing::read_text(entry.path().string()));
    for (std::string line; std::getline(text, line);) {
      auto event = nlohmann::json::parse(line, nullptr, false);
      if (!event.is_object()) continue;
      testing::forget_times_and_ranks(event);
      lines.push_back(std::move(event));
    }
  }
  return lines;
}

/// After a loss lines may be missing, and one may tell of it; no other is new, or in another place, but those that were
/// said to be changed.
void require_part(const std::vector<nlohmann::json>& mine, const std::vector<nlohmann::json>& reference,
                  const std::vector<nlohmann::json>& kept_aside, std::vector<std::string>* differences) {
  auto at = reference.begin();
  for (const auto& line : mine) {
    if (line.value("event", "") == "lost") continue;
    const bool is_known = std::find(reference.begin(), reference.end(), line) != reference.end();
    if (!is_known && std::find(kept_aside.begin(), kept_aside.end(), line) != kept_aside.end()) continue;
    at = std::find(at, reference.end(), line);
    if (at == reference.end())
      return differences->push_back("metrics.jsonl: not in the reference: " + line.dump());
    ++at;
  }
}

std::string require_bytes(const std::string& path) {
  auto bytes = testing::read_text(path);
  if (bytes.empty()) throw Violation(path + ": missing or empty after a finished run");
  return bytes;
}

}  // namespace

Result::Result(const std::string& run_dir, std::int64_t steps) {
  const auto directory = run_dir + "/checkpoints";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    checkpoints_.push_back(entry.path().filename());
  }
  std::sort(checkpoints_.begin(), checkpoints_.end());
  const auto last = fmt::format("{}/step-{:08}", directory, steps);
  weights_ = require_bytes(last + "/model.safetensors");
  optimizer_ = require_bytes(last + "/optimizer.safetensors");
  trail_ = require_bytes(run_dir + "/trail.bin");
  try {
    metrics_ = testing::comparable_metrics(run_dir);
    kept_aside_ = lines_kept_aside(run_dir);
  } catch (const nlohmann::json::exception& error) {
    throw Violation(fmt::format("{}/metrics.jsonl: {}", run_dir, error.what()));
  }
}

std::vector<std::string> Result::differences_from(const Result& reference, WholeRecords whole) const {
  std::vector<std::string> differences;
  compare_bytes("model.safetensors", weights_, reference.weights_, &differences);
  compare_bytes("optimizer.safetensors", optimizer_, reference.optimizer_, &differences);
  if (whole.trail) compare_bytes("trail.bin", trail_, reference.trail_, &differences);
  if (whole.metrics) {
    compare_metrics(metrics_, reference.metrics_, &differences);
  } else {
    require_part(metrics_, reference.metrics_, kept_aside_, &differences);
  }
  return differences;
}

}  // namespace lockstep::chaos
