// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lines are found once and parsed again when their step is replayed, so that memory is that of the file.
#include "trainer/tools/prove_claims.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint64_t kMostMetricsBytes = std::uint64_t{1} << 30;
constexpr std::array<std::string_view, 6> kComputedEvents = {"start", "step",       "loss",
                                                             "epoch", "evaluation", "end"};

/// Keys that some events of some runs have, and that follow from the job and its data. Those of the test set are others.
constexpr std::array<std::string_view, 25> kComputedKeys = {"epoch",
                                                            "step",
                                                            "loss",
                                                            "steps",
                                                            "mean_loss",
                                                            "learning_rate",
                                                            "train_loss",
                                                            "train_accuracy",
                                                            "accuracy_steps",
                                                            "train_samples",
                                                            "validation_loss",
                                                            "validation_accuracy",
                                                            "validation_samples",
                                                            "ema_validation_loss",
                                                            "swa_validation_loss",
                                                            "ema_validation_accuracy",
                                                            "swa_validation_accuracy",
                                                            "rounded_to_zero",
                                                            "initial_weights",
                                                            "initial_tensors",
                                                            "initial_sha256",
                                                            "new_tensors",
                                                            "unused_tensors",
                                                            "stopped_early",
                                                            "published_hash"};

/// The facts that a replay computes, under the manifest's names: those of an object's fields as "gradient_units.exponents".
nlohmann::ordered_json computed_facts(CheckpointFacts facts) {
  static const std::set<std::string> kOthers = {"test_step", "trail", "metrics",     "replayed",    "job",
                                                "data",      "world", "bucket_plan", "bucket_sizes"};
  facts.epoch_loss_units.carry();  // equal sums as equal lists, however they were added up
  if (facts.unprinted) facts.unprinted->loss_units.carry();
  nlohmann::ordered_json all = facts_json(facts), json = {{"kept", nlohmann::ordered_json::array()}};
  if (facts.patience) all["patience"]["best"] = facts.patience->best;  // no manifest has -1
  for (const auto& [key, value] : all.items()) {
    if (kOthers.contains(key)) continue;
    if (!value.is_object()) json[key] = value;
    for (const auto& [name, field] : value.items())
      if (value.is_object()) json[key + "." + name] = field;
  }
  return json;
}

/// Shortens a value; of a long one only its presence is shown.
std::string shortened(const nlohmann::json& value) {
  constexpr std::size_t kMost = 80;
  const std::string text = json_text(value);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

}  // namespace

MetricsClaims::MetricsClaims(std::string text) : text_(std::move(text)) {
  std::int64_t number = 0;
  std::size_t begin = 0, end = text_.find('\n');
  for (; end != text_.npos; end = text_.find('\n', begin)) {
    add(++number, begin, end - begin);
    begin = end + 1;
  }
  std::ranges::stable_sort(lines_, {}, &ClaimedLine::step);
}

void MetricsClaims::add(std::int64_t number, std::size_t begin, std::size_t size) {
  ClaimedLine line{.step = 0, .number = number, .event = {}, .begin = begin, .size = size};
  const auto refuse = [&](const std::string& why) {
    problems_.push_back({last_step_, fmt::format("line {} of metrics.jsonl {}", number, why)});
  };
  const auto parsed = event(line);
  MetricsEvent as_others_read_it;
  const bool is_plain = as_others_read_it.read(std::string_view(text_).substr(begin, size)) &&
                        !as_others_read_it.has_escaped_keys();
  const auto name = parsed.is_object() ? parsed.value("event", nlohmann::json()) : nlohmann::json();
  if (!is_plain || !name.is_string()) return refuse("is not an event");
  line.event = name.get<std::string>();
  const auto step = line.event == "start" ? nlohmann::json(0) : parsed.value("step", nlohmann::json());
  if (step.is_number_integer()) line.step = step.get<std::int64_t>();
  if (line.event == "lost") lost_up_to_ = std::max(lost_up_to_, line.step);
  if (std::ranges::find(kComputedEvents, line.event) == kComputedEvents.end()) return;
  if (!step.is_number_integer() || line.step < last_step_)
    return refuse(fmt::format("has step {} after those of step {}", shortened(step), last_step_));
  if (line.step == 0 && line.event != "start")  // no evaluation and no loss belongs to it
    return refuse("tells of step 0, and steps count from 1");
  last_step_ = line.step;
  lines_.push_back(std::move(line));
}

std::span<const ClaimedLine> MetricsClaims::of_step(std::int64_t step) const {
  const auto first = std::ranges::lower_bound(lines_, step, {}, &ClaimedLine::step);
  return {first, std::ranges::upper_bound(first, lines_.end(), step, {}, &ClaimedLine::step)};
}

std::int64_t MetricsClaims::next_step(std::int64_t step) const {
  const auto next = std::ranges::upper_bound(lines_, step, {}, &ClaimedLine::step);
  return next == lines_.end() ? std::numeric_limits<std::int64_t>::max() : next->step;
}

nlohmann::json MetricsClaims::event(const ClaimedLine& line) const {
  return parse_json_or_discard(std::string_view(text_).substr(line.begin, line.size));
}

MetricsClaims read_claims(Env& env, const std::string& run_dir) {
  const std::string path = run_dir + "/metrics.jsonl";
  return read_patiently(env, [&] {
    if (!env.exists(path)) return MetricsClaims();
    const auto bytes = env.read_first(path, kMostMetricsBytes + 1);
    if (bytes.size() > kMostMetricsBytes)
      throw DataError(fmt::format(
          "{}: is larger than 1 GiB, which no run writes; move it away to prove without it", path));
    return MetricsClaims(std::string(as_text(bytes)));
  });
}

std::vector<std::string> differing_numbers(const nlohmann::json& said, const nlohmann::ordered_json& computed,
                                           const std::set<std::string>& leave_out) {
  std::vector<std::string> differing;
  const auto written = parse_json(json_text(computed));  // infinities and NaN become null, as in the file
  for (const auto& [key, value] : written.items()) {
    if (leave_out.contains(key) || !said.contains(key) || said.at(key) == value) continue;
    differing.push_back(
        fmt::format("{} is {}, and came to {}", key, shortened(said.at(key)), shortened(value)));
  }
  return differing;
}

std::vector<std::string> differing_event(const nlohmann::json& said, const nlohmann::ordered_json& computed,
                                         const std::set<std::string>& leave_out) {
  auto differing = differing_numbers(said, computed, leave_out);
  for (const auto& [key, value] : said.items()) {
    const bool is_computed =
        kOfTheTestSet.contains(key) || std::ranges::find(kComputedKeys, key) != kComputedKeys.end();
    if (is_computed && !computed.contains(key) && !leave_out.contains(key))
      differing.push_back(fmt::format("a run of this job writes no {} here", key));
  }
  return differing;
}

std::vector<std::string> differing_facts(const CheckpointFacts& said, const CheckpointFacts& computed) {
  return differing_numbers(parse_json(json_text(computed_facts(said))), computed_facts(computed), {});
}

}  // namespace lockstep
