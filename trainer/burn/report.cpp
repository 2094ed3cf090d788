// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The report in three forms. That for people fits 80 columns.
#include "common/text_layout.hpp"
#include "trainer/burn/burn.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep::burn {
namespace {

using nlohmann::ordered_json;

std::size_t count_of(const BurnReport& report, Grade grade) {
  return static_cast<std::size_t>(
      std::ranges::count_if(report.ranks, [&](const RankResult& r) { return grade_of(r) == grade; }));
}

/// State of one check on one rank: its finding, or else whether it was done.
struct CheckState {
  Grade grade = Grade::kPass;
  std::string what;
};

/// The check that a kind of finding belongs to.
std::string_view check_of(const BurnFinding& finding) {
  if (finding.grade == Grade::kSlow) return "speed";
  return finding.kind == "job" || finding.kind == "jobs" ? "jobs" : "links";
}

/// How patient a comparison of speeds was; "" where the rank had its core to itself.
std::string waits_of(const RankResult& result) {
  const auto share = result.measures.find("share of core");
  if (share == result.measures.end() || share->second > 0.95) return "";
  return fmt::format("; it waited for a core {:.0f} % of the time", 100 * (1 - share->second));
}

CheckState state_of(const BurnReport& report, const RankResult& result, std::string_view check) {
  if (std::ranges::find(report.left_out, check) != report.left_out.end())
    return {Grade::kNotTested, fmt::format("--without {}", check)};
  for (const BurnFinding& finding : result.findings)
    if (check_of(finding) == check) return {finding.grade, finding.what};
  if (const auto done = result.exercised.find(std::string(check)); done != result.exercised.end())
    return {Grade::kPass, done->second + (check == "speed" ? waits_of(result) : "")};
  return {Grade::kNotTested, report.ranks.size() == 1 ? "there is one rank" : "there is nothing to compare"};
}

/// "WRONG rank 2 on node7: job: ...": what a hook gives as a reason.
std::string verdict_of(const BurnReport& report) {
  const auto worst = std::ranges::max_element(report.ranks, {}, grade_of);
  const Grade grade = grade_of(*worst);
  if (grade == Grade::kPass)
    return fmt::format(
        "{} {} on {}",
        report.stopped_by.empty() ? "PASS" : fmt::format("NOT TESTED to the end: {},", report.stopped_by),
        counted(report.ranks.size(), "rank"), counted(report.hosts(), "host"));
  const BurnFinding& finding = *std::ranges::max_element(worst->findings, {}, &BurnFinding::grade);
  const std::size_t others = count_of(report, grade) - 1;
  return fmt::format("{} rank {} on {}: {}: {}{}", spelt(grade), worst->rank, worst->host, finding.kind,
                     finding.what, others > 0 ? fmt::format(" (and {} more)", counted(others, "rank")) : "");
}

std::string table_of(const BurnReport& report) {
  TableRows rows = {{"rank", "host", "device", "UUID", "verdict"}};
  for (const RankResult& result : report.ranks)
    rows.push_back({std::to_string(result.rank), clip_middle(result.host, 18), clip_middle(result.device, 22),
                    result.uuid.empty() ? "-" : clip_middle(result.uuid, 16),
                    std::string(spelt(grade_of(result)))});
  return align_columns(rows, {0});
}

/// Checks done by rank 0; the other ranks did the same ones. Speed is not tested on a rank without a like.
std::string exercised_lines(const BurnReport& report) {
  TableRows rows;
  for (const std::string_view check : kChecks) {
    CheckState shown = state_of(report, report.ranks.front(), check);
    for (const RankResult& result : report.ranks) {
      const CheckState state = state_of(report, result, check);
      if (state.grade > shown.grade && state.grade == Grade::kNotTested) shown.what = state.what;
      shown.grade = std::max(shown.grade, state.grade);
    }
    rows.push_back({std::string(check), std::string(spelt(shown.grade)), shown.what});
  }
  return align_columns(rows);
}

std::string finding_lines(const BurnReport& report) {
  std::string text;
  for (const RankResult& result : report.ranks)
    for (const BurnFinding& finding : result.findings)
      text += fmt::format("{} rank {} on {}: {}: {}\n  do: {}\n", spelt(finding.grade), result.rank,
                          result.host, finding.kind, finding.what, finding.fix);
  return text.empty() ? "" : "\n" + text;
}

ordered_json json_of(const BurnReport& report, const RankResult& result) {
  ordered_json findings = ordered_json::array();
  for (const BurnFinding& f : result.findings)
    findings.push_back({{"verdict", spelt(f.grade)}, {"kind", f.kind}, {"what", f.what}, {"fix", f.fix}});
  ordered_json links = ordered_json::array();
  for (const LinkView& link : result.links)
    links.push_back({{"with", link.with},
                     {"messages", link.received},
                     {"damaged", link.damaged},
                     {"wrong_sums", link.wrong_sums},
                     {"seconds", link.seconds},
                     {"bytes", link.bytes},
                     {"latency", link.latency}});
  ordered_json checks = ordered_json::object();
  for (const std::string_view check : kChecks) {
    const CheckState state = state_of(report, result, check);
    checks[std::string(check)] = {{"verdict", spelt(state.grade)}, {"what", state.what}};
  }
  return {{"rank", result.rank},
          {"host", result.host},
          {"device", result.device},
          {"uuid", result.uuid},
          {"processor", result.processor},
          {"simd", result.simd},
          {"threads", result.threads},
          {"verdict", spelt(grade_of(result))},
          {"findings", findings},
          {"measures", result.measures},
          {"links", links},
          {"checks", checks}};
}

}  // namespace

std::string to_text(const BurnReport& report, int columns) {
  std::string text = table_of(report) + "\n" + exercised_lines(report) + finding_lines(report);
  text += fmt::format("\nnot exercised: {}\n", fmt::join(report.not_exercised, "; "));
  text += fmt::format("level {}, {} in {}\nburn: {}\n", report.level, counted(report.rounds, "round"),
                      format_duration(report.seconds), verdict_of(report));
  return fold_lines(text, columns);
}

ordered_json to_json(const BurnReport& report) {
  ordered_json ranks = ordered_json::array();
  for (const RankResult& result : report.ranks) ranks.push_back(json_of(report, result));
  return {{"format", 2},
          {"verdict", verdict_of(report)},
          {"exit_code", exit_code_of(report)},
          {"level", report.level},
          {"seconds", report.seconds},
          {"rounds", report.rounds},
          {"not_exercised", report.not_exercised},
          {"stopped_by", report.stopped_by},
          {"ranks", ranks}};
}

std::string to_share(const BurnReport& report) {
  const RankResult& first = report.ranks.front();
  std::string text =
      fmt::format("processor   {}, {}\ndevice      {}\n", first.processor, first.simd, first.device);
  if (!report.driver.empty()) text += fmt::format("driver      {}\n", report.driver);
  // After its version Open MPI says who built it and where, and MPICH names folders.
  const std::string library = report.library.substr(0, report.library.find_first_of(",\n"));
  text +=
      fmt::format("built with  {}\nlibrary     {}\n", report.compiler, library.empty() ? "none" : library);
  text += fmt::format("ranks       {} on {}, {} each\n", report.ranks.size(), counted(report.hosts(), "host"),
                      counted(first.threads, "thread"));
  text += fmt::format("burn        level {}, {}, {} PASS, {} SLOW, {} NOT TESTED, {} WRONG\n", report.level,
                      format_duration(report.seconds), count_of(report, Grade::kPass),
                      count_of(report, Grade::kSlow), count_of(report, Grade::kNotTested),
                      count_of(report, Grade::kWrong));
  for (const auto& [job, weights] : first.answers) text += fmt::format("{:<22} {}\n", job, weights);
  return text;
}

}  // namespace lockstep::burn
