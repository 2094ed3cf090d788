// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Compares the steps that were asked for with those taken, and with the last line of metrics.jsonl.
#include "trainer/run/finished_run.hpp"

#include "common/text/json_text.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

/// The keys that end the job no later than where its run stands.
std::string what_to_raise(const Job& job, const RunLength& length) {
  std::vector<std::string> keys;
  if (job.train.epochs * length.steps_per_epoch <= length.taken)
    keys.push_back(fmt::format("train.epochs={} or more", length.taken / length.steps_per_epoch + 1));
  if (job.train.max_steps > 0 && job.train.max_steps <= length.taken)
    keys.push_back(fmt::format("train.max_steps={} or more (0: no limit)", length.taken + 1));
  return fmt::format("{}", fmt::join(keys, " and "));
}

}  // namespace

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
  const auto event = parse_json_or_discard(line);
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
  const std::string taken = counted(length.taken, "step");
  const std::string state = length.taken == length.asked ? fmt::format("holds all {}", taken)
                                                         : fmt::format("holds {}, more than the {} asked for",
                                                                       taken, with_thousands(length.asked));
  return fmt::format(
      "already finished: {} {}; nothing was trained or written. To train on, set {}; to start afresh, "
      "run.resume=never or another run.dir",
      job.run.dir, state, what_to_raise(job, length));
}

}  // namespace lockstep
