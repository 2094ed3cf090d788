// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Finds the place at which to cut metrics.jsonl.
#include "common/digest.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace lockstep {
namespace {

/// True if the line tells of something up to the checkpoint.
bool belongs(std::string_view line, std::int64_t step, bool evaluated) {
  MetricsEvent event;
  if (!event.read(line) || event.name() == "end") return false;
  const auto at = event.integer("step");
  const bool of_evaluation = event.name() == "epoch" || event.name() == "evaluation";
  return !at || *at < step || (*at == step && (!of_evaluation || evaluated));
}

/// True if an event "lost" tells of lines up to this step. One of a later step does, too, and is cut off.
bool was_told(std::string_view text, std::int64_t step) {
  for (std::size_t at = text.find("\"lost\""); at != text.npos; at = text.find("\"lost\"", at + 1)) {
    const std::size_t begin = text.rfind('\n', at) + 1;  // npos + 1: the first line
    MetricsEvent event;
    const bool is_it = event.read(text.substr(begin, text.find('\n', at) - begin)) && event.name() == "lost";
    if (is_it && event.integer("step") == step) return true;
  }
  return false;
}

}  // namespace

std::string_view first_lines(std::string_view text, std::int64_t lines) {
  std::size_t end = 0;
  for (std::size_t next = 0; lines > 0 && (next = text.find('\n', end)) != text.npos; --lines) end = next + 1;
  return text.substr(0, end);
}

std::optional<std::string> lost_metrics(Env& env, const std::string& path, std::int64_t step,
                                        const CheckpointPosition& noted) {
  if (noted.count == 0) return std::nullopt;
  const std::string goes_on =
      fmt::format("the run goes on, and its metrics with the steps after {}", with_thousands(step));
  if (!read_patiently(env, [&] { return env.exists(path); }))
    return fmt::format("{} is gone: its {} up to step {} {} lost; {}", path, counted(noted.count, "line"),
                       with_thousands(step), noted.count == 1 ? "is" : "are", goes_on);
  const auto bytes = read_patiently(env, [&] { return env.read(path); });
  const std::string_view text = as_text(bytes), there = first_lines(text, noted.count);
  const auto lines = static_cast<std::int64_t>(std::ranges::count(there, '\n'));
  const bool whole = lines == noted.count;
  const auto of_there = std::as_bytes(std::span(there));
  if ((whole && hex(sha256(of_there)) == noted.sha256) || was_told(text, step)) return std::nullopt;
  if (!whole)
    return fmt::format("{} was cut off: {} of its {} up to step {} are lost; {}", path,
                       with_thousands(noted.count - lines), counted(noted.count, "line"),
                       with_thousands(step), goes_on);
  const std::string aside = free_name(env, path + kDamagedSuffix, "-");
  write_synced(env, aside, bytes);
  return fmt::format("{} was changed: its {} up to step {} {} written; kept as {}; {}", path,
                     counted(noted.count, "line"), with_thousands(step),
                     noted.count == 1 ? "is not the one that was" : "are not those that were", aside,
                     goes_on);
}

void truncate_metrics(Env& env, const std::string& path, std::int64_t step, bool evaluated) {
  if (!env.exists(path)) return;
  const std::vector<std::byte> bytes = env.read(path);
  const std::string_view text = as_text(bytes);
  std::size_t kept = 0;
  for (std::size_t end = 0; (end = text.find('\n', kept)) != text.npos; kept = end + 1)
    if (!belongs(text.substr(kept, end - kept), step, evaluated)) break;
  if (kept != text.size()) replace_file(env, path, std::span(bytes).first(kept));
}

std::optional<RecordedEnd> recorded_end(Env& env, const std::string& path) {
  if (!env.exists(path)) return std::nullopt;
  const std::vector<std::byte> bytes = env.read(path);
  std::string_view text = as_text(bytes);
  text = text.substr(0, text.rfind('\n') + 1);  // whole lines
  if (!text.empty()) text.remove_suffix(1);
  MetricsEvent event;
  if (!event.read(text.substr(text.rfind('\n') + 1)) || event.name() != "end") return std::nullopt;
  return RecordedEnd{event.integer("step"), event.text("weights_sha256")};
}

}  // namespace lockstep
