// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/run_facts.hpp"

#include "tests/trainer/end_to_end/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep::chaos {
namespace {

/// The names in RUN/checkpoints; those that come and go meanwhile may be missing.
std::vector<std::string> checkpoint_names(const std::string& run_dir) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(run_dir + "/checkpoints", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

/// The step of the last complete line that has one.
std::int64_t last_step_in(std::string_view text) {
  constexpr std::string_view kKey = "\"step\":";
  const auto complete = text.substr(0, text.rfind('\n') + 1);
  const auto at = complete.rfind(kKey);
  return at == std::string_view::npos ? 0 : std::strtoll(complete.data() + at + kKey.size(), nullptr, 10);
}

}  // namespace

RunFacts look_at(const std::string& run_dir) {
  RunFacts facts;
  for (const auto& name : checkpoint_names(run_dir)) {
    if (name.starts_with("step-")) {
      facts.newest_checkpoint = std::max<std::int64_t>(facts.newest_checkpoint, std::stoll(name.substr(5)));
    }
    facts.saving = facts.saving || name.starts_with(".tmp-step-");
    facts.pruning = facts.pruning || name.starts_with(".tmp-removed-");
  }
  facts.metrics = testing::read_text(run_dir + "/metrics.jsonl");
  facts.last_logged = last_step_in(facts.metrics);
  return facts;
}

std::int64_t last_logged_step(const std::string& run_dir) {
  constexpr std::streamoff kTail = 1000;  // longer than any two lines
  std::ifstream file(run_dir + "/metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return 0;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - kTail, 0));
  std::string tail(static_cast<std::size_t>(std::min(size, kTail)), '\0');
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return last_step_in(tail);
}

bool is_saving(const std::string& run_dir) {
  const auto names = checkpoint_names(run_dir);
  return std::any_of(names.begin(), names.end(),
                     [](const auto& name) { return name.starts_with(".tmp-step-"); });
}

}  // namespace lockstep::chaos
