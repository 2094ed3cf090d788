// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where to cut metrics.jsonl.
#include "trainer/checkpoint/metrics_cut.hpp"

#include "common/text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

/// True if the line tells of something up to the checkpoint.
bool belongs(std::string_view line, std::int64_t step, bool epoch_line_written) {
  const auto entry = parse_json_or_discard(line);
  if (!entry.is_object()) return false;
  const auto event = entry.value("/event"_json_pointer, nlohmann::json());
  if (event == "end") return false;
  const auto at = entry.value("/step"_json_pointer, nlohmann::json());
  if (!at.is_number_integer()) return true;
  const auto line_step = at.get<std::int64_t>();
  return line_step < step || (line_step == step && (event != "epoch" || epoch_line_written));
}

}  // namespace

MetricsCut truncate_metrics(Env& env, const std::string& path, std::int64_t step, bool epoch_line_written) {
  MetricsCut cut;
  if (!env.exists(path)) return cut;
  const std::vector<std::byte> bytes = env.read(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t position = 0;
  while (true) {
    const std::size_t newline = text.find('\n', position);
    if (newline == std::string_view::npos) break;
    if (!belongs(text.substr(position, newline - position), step, epoch_line_written)) break;
    position = newline + 1;
    ++cut.kept_lines;
  }
  if (position == text.size()) return cut;
  const std::string_view dropped = text.substr(position);
  cut.dropped_lines = static_cast<std::size_t>(std::count(dropped.begin(), dropped.end(), '\n')) +
                      (dropped.ends_with('\n') ? 0 : 1);
  replace_file(env, path, std::span(bytes).first(position));
  return cut;
}

bool ends_a_run(Env& env, const std::string& path) {
  if (!env.exists(path)) return false;
  const std::vector<std::byte> bytes = env.read(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text = text.substr(0, text.rfind('\n') + 1);
  if (text.empty()) return false;
  text.remove_suffix(1);
  const auto entry = parse_json_or_discard(text.substr(text.rfind('\n') + 1));
  return entry.is_object() && entry.value("/event"_json_pointer, nlohmann::json()) == "end";
}

}  // namespace lockstep
