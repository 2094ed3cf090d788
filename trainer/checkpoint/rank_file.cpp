// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One JSON object a line; each ends with a seal over the text before it.
#include "trainer/checkpoint/rank_file.hpp"

#include "common/digest.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/json_fields.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr std::string_view kStepBegins = R"({"step":)", kSealKey = R"(,"seal":")";
constexpr std::size_t kSealDigits = 8;

std::string seal_of(std::string_view text) {
  return hex(sha256(std::as_bytes(std::span(text)))).substr(0, kSealDigits);
}

/// @param text  an object on one line, without the closing brace
std::string sealed(const std::string& text) {
  return fmt::format("{}{}{}\"}}\n", text, kSealKey, seal_of(text));
}

bool has_good_seal(std::string_view line) {
  const std::size_t at = line.rfind(kSealKey);
  return at != line.npos && line.substr(at) == fmt::format("{}{}\"}}", kSealKey, seal_of(line.substr(0, at)));
}

constexpr auto kPlaceFields = [](auto&& archive, RankPlace& place) {
  archive("host", place.host);
  archive("device", place.device);
  optional_field(archive, "uuid", place.uuid);
  archive("first_grain", place.first_grain);
  archive("grains", place.grains);
  optional_field(archive, "tensors", place.tensors);
};

constexpr auto kStretchFields = [](auto&& archive, RankStretch& stretch) {
  std::int64_t version = kRankFileVersion;
  archive("version", version);
  archive("from", stretch.from);
  archive("strategy", stretch.strategy);
  archive("split", stretch.split);
  archive.list("ranks", "ranks", stretch.ranks, kPlaceFields);
};

std::string line_of(const RankStretch& stretch) {
  std::string text = json_text(json_of_fields(stretch, kStretchFields));
  text.pop_back();
  return sealed(text);
}

/// By hand: there is one for each step.
std::string line_of(const RankSums& step) {
  return sealed(fmt::format(R"({}{},"copies":"{:016x}","sums":"{:016x}")", kStepBegins, step.step,
                            step.copies, step.sums));
}

std::uint64_t number_of(const MetricsEvent& line, const char* key) {
  const std::string text = line.text(key).value_or("");
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

/// Nothing: a line of another kind, or of a later version.
std::optional<RankStretch> stretch_of(const MetricsEvent& line) {
  if (line.integer("version") != kRankFileVersion) return std::nullopt;
  try {
    auto stretch = read_fields<RankStretch>(parse_json_or_discard(line.line()), "line", kStretchFields);
    if (!stretch.ranks.empty()) return stretch;
  } catch (const DataError&) {  // as if it had no line
  }
  return std::nullopt;
}

/// How many bytes of the file stay where a run goes on with step `from`.
std::uint64_t bytes_before(Env& env, const std::string& path, std::int64_t from) {
  const auto bytes = read_patiently(env, [&] { return env.read(path); });
  const std::string_view text = as_text(bytes);
  std::size_t end = 0;
  MetricsEvent line;
  for (std::size_t next = text.find('\n'); next != text.npos; next = text.find('\n', end)) {
    const auto of_line = text.substr(end, next - end);
    const bool is_good = has_good_seal(of_line) && line.read(of_line);
    if (is_good && line.integer("step").value_or(line.integer("from").value_or(0)) >= from) break;
    end = next + 1;
  }
  return end;
}

/// Calls `see` with each line whose seal is good, and `on_damaged` with each other one. Nothing: no file.
std::optional<MetricsLines> read_lines(const std::string& path, const OnMetricsEvent& see,
                                       const OnDamagedLine& on_damaged = {}) {
  std::int64_t unsealed = 0;
  const auto see_sealed = [&](const MetricsEvent& line) {
    if (has_good_seal(line.line())) return see(line);
    ++unsealed;
    if (on_damaged) on_damaged(line.line());
  };
  try {
    auto lines = read_metrics(path, see_sealed, on_damaged);
    lines.whole -= unsealed;
    lines.damaged += unsealed;
    return lines;
  } catch (const MissingDataError&) {
    return std::nullopt;
  }
}

/// "  step 1 on: 4 ranks on 2 hosts (node1, node2), data"
std::string text_of(const RankStretch& stretch) {
  std::set<std::string> hosts;
  for (const RankPlace& place : stretch.ranks) hosts.insert(place.host);
  const std::string text = fmt::format("step {} on: {} on {} ({}), {}", with_thousands(stretch.from),
                                       counted(stretch.ranks.size(), "rank"), counted(hosts.size(), "host"),
                                       fmt::join(hosts, ", "), stretch.strategy);
  return "  " + printable_line(text) + "\n";
}

}  // namespace

bool RankPlace::holds(std::int64_t tensor) const {
  return !tensors || std::ranges::find(*tensors, tensor) != tensors->end();
}

std::string describe(int rank, const RankPlace& place) {
  return fmt::format("rank {} on {} ({}{}{})", rank, place.host, place.device, place.uuid.empty() ? "" : ", ",
                     place.uuid);
}

std::optional<int> find_wrong_rank(std::uint64_t difference, std::uint64_t weighted, std::size_t ranks) {
  std::optional<int> found;
  if (difference == 0) return found;
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    if (rank_weight(rank) * difference != weighted) continue;
    if (found) return std::nullopt;
    found = rank;
  }
  return found;
}

RankFile::RankFile(Env& env, const std::string& run_dir, const RankStretch& stretch) {
  const std::string path = run_dir + "/" + kRankFile;
  read_patiently(env, [&] { make_own(env, path); });
  file_ = std::make_unique<AppendFile>(path, is_file(env, path) ? bytes_before(env, path, stretch.from) : 0);
  env.sync_directory(run_dir);
  file_->append(line_of(stretch));
}

void RankFile::write(std::span<const RankSums> steps) {
  std::string lines;
  for (const RankSums& step : steps) lines += line_of(step);
  file_->append(lines);
}

void cut_rank_file(Env& env, const std::string& run_dir, std::int64_t from) {
  const std::string path = run_dir + "/" + kRankFile;
  if (!is_file(env, path)) return;
  read_patiently(env, [&] { make_own(env, path); });
  AppendFile(path, bytes_before(env, path, from)).sync();
}

std::optional<RecordedRanks> find_ranks(const std::string& path, std::int64_t step) {
  std::optional<RecordedRanks> found;
  std::int64_t last = 0;  // step that was told of
  const auto see = [&](const MetricsEvent& line) {
    if (const auto version = line.integer("version")) {
      if (line.integer("from").value_or(0) > step) return;
      found.reset();  // whatever it says, the one before it has ended
      if (auto stretch = stretch_of(line)) found = RecordedRanks{std::move(*stretch), {}};
    } else if (const auto its_step = line.integer("step")) {
      last = *its_step;
      if (found && last == step)
        found->sums = RankSums{step, number_of(line, "copies"), number_of(line, "sums")};
    }
  };
  read_lines(path, see, [&](std::string_view line) {
    if (last < step && !line.starts_with(kStepBegins)) found.reset();  // other ranks may have begun there
  });
  return found;
}

std::vector<std::int64_t> first_steps_of_starts(const std::string& path) {
  std::vector<std::int64_t> steps;
  read_lines(path, [&](const MetricsEvent& line) {
    if (line.integer("version")) steps.push_back(line.integer("from").value_or(1));
  });
  return steps;
}

std::optional<RankFileReport> report_ranks(const std::string& path) {
  RankFileReport report;
  const auto lines = read_lines(path, [&](const MetricsEvent& line) {
    if (const auto stretch = stretch_of(line)) report.text += text_of(*stretch);
  });
  if (!lines) return std::nullopt;
  report.good = lines->damaged == 0;
  report.text = fmt::format(
      "{}: {}{}\n{}", printable_line(path), counted(lines->whole, "line"),
      report.good
          ? ", all good"
          : fmt::format(" good, {} damaged: a proof cannot name the rank of those steps", lines->damaged),
      report.text);
  return report;
}

}  // namespace lockstep
