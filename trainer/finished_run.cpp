// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/finished_run.hpp"

#include "trainer/progress.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

namespace lockstep {

std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch) {
  const std::int64_t all = job.train.epochs * steps_per_epoch;
  return job.train.max_steps > 0 ? std::min(all, job.train.max_steps) : all;
}

std::optional<std::string> recorded_end(Env& env, const std::string& run_dir, std::int64_t steps) {
  const std::string path = run_dir + "/metrics.jsonl";
  if (!env.exists(path)) return std::nullopt;
  const auto bytes = env.read(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.ends_with('\n')) return std::nullopt;  // torn
  text.remove_suffix(1);
  const auto line = text.substr(text.rfind('\n') + 1);
  const auto event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object() || event.value("event", nlohmann::json()) != "end") return std::nullopt;
  if (event.value("step", nlohmann::json()) != steps) return std::nullopt;
  const auto digest = event.value("weights_sha256", nlohmann::json());
  return digest.is_string() ? std::optional(digest.get<std::string>()) : std::nullopt;
}

bool nothing_left(Env& env, const std::string& run_dir, const RunLength& length, const std::string& digest) {
  if (length.taken != length.asked) return length.taken > length.asked;
  return recorded_end(env, run_dir, length.taken) == digest;
}

std::string nothing_left_text(const Job& job, const RunLength& length) {
  const auto taken = with_thousands(length.taken);
  const std::int64_t epochs = length.taken / length.steps_per_epoch;
  const bool limited_by_epochs = length.asked == job.train.epochs * length.steps_per_epoch;
  const std::string how = limited_by_epochs ? fmt::format("train.epochs={}", epochs + 1)
                                            : fmt::format("train.max_steps above {}", length.taken);
  const std::string state =
      length.taken == length.asked
          ? fmt::format("{} holds all {} steps", job.run.dir, taken)
          : fmt::format("{} holds {} steps, more than the {} asked for", job.run.dir, taken,
                        with_thousands(length.asked));
  return fmt::format(
      "already finished: {}; nothing was trained or written. To train on, say {} or more; to start afresh, "
      "run.resume=never or another run.dir",
      state, how);
}

}  // namespace lockstep
