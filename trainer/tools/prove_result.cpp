// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Result of a proof as text and as JSON.
#include "trainer/tools/prove_result.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json finding_json(const Discrepancy& finding) {
  Json json = {{"step", finding.step}, {"what", finding.what}};
  if (!finding.parameter.empty()) json["parameter"] = finding.parameter;
  if (finding.bucket) json["bucket"] = *finding.bucket;
  if (finding.flipped) json.update({{"element", finding.flipped->index}, {"bit", finding.flipped->bit}});
  if (finding.rank) {
    const RankPlace& place = finding.rank->place;
    json.update({{"rank", finding.rank->number}, {"host", place.host}, {"device", place.device}});
    if (!place.uuid.empty()) json["uuid"] = place.uuid;
  }
  json.update({{"text", finding.text}, {"cause", finding.cause}});
  return json;
}

std::string place_of(const Discrepancy& finding) {
  std::string place = "step " + with_thousands(finding.step);
  if (finding.bucket) place += fmt::format(", bucket {}", *finding.bucket);
  if (!finding.parameter.empty()) place += ", " + finding.parameter;
  return place;
}

/// Counts the proved steps among those asked for.
std::int64_t proved_of_asked(const ProofResult& verdict) {
  const auto asked = merged(verdict.asked);
  return count_steps(asked) - count_steps(without(asked, merged(verdict.proved)));
}

const char* word_of(const ProofResult& verdict) {
  if (verdict.refuted()) return "refuted";
  return verdict.complete() ? "proved" : "not proved";
}

}  // namespace

int ProofResult::exit_code() const {
  if (refuted()) return 1;
  if (complete()) return 0;
  return static_cast<int>(lacks_arithmetic ? ExitCode::kDeviceUnavailable : ExitCode::kDataMissing);
}

void refute(ProofResult& verdict, std::int64_t step, const char* what, std::string text, std::string cause) {
  verdict.findings.push_back(
      {.step = step, .what = what, .text = std::move(text), .cause = std::move(cause)});
}

void add(ProofResult& verdict, const ProofResult& more) {
  const auto append = [](auto& list, const auto& others) {
    list.insert(list.end(), others.begin(), others.end());
  };
  append(verdict.asked, more.asked);
  append(verdict.proved, more.proved);
  append(verdict.findings, more.findings);
  append(verdict.not_proved, more.not_proved);
  verdict.asked = merged(verdict.asked);
  verdict.proved = merged(verdict.proved);
  std::ranges::stable_sort(verdict.findings, {}, &Discrepancy::step);
  std::ranges::stable_sort(verdict.not_proved, {}, [](const NotProved& entry) { return entry.steps.first; });
  verdict.replayed += more.replayed;
  verdict.lacks_arithmetic |= more.lacks_arithmetic;
}

std::string to_text(const ProofResult& verdict, const ProofCircumstances& circumstances) {
  std::string text;
  for (const Discrepancy& finding : verdict.findings) {
    text += fmt::format("refuted at {}: {}\n", place_of(finding), finding.text);
    if (!finding.cause.empty()) text += fmt::format("  likely cause: {}\n", finding.cause);
  }
  for (const NotProved& entry : verdict.not_proved)
    text += fmt::format("not proved: {}: {}\n", describe({entry.steps}), entry.why);
  text += fmt::format("proved: {}\n", describe(verdict.proved));
  text += fmt::format("{}: {}, {} of {} proved; {} replayed on {}, {}, in {:.1f} s\n", circumstances.run,
                      word_of(verdict), with_thousands(proved_of_asked(verdict)),
                      counted(count_steps(verdict.asked), "step"), with_thousands(verdict.replayed),
                      circumstances.device, counted(circumstances.ranks, "rank"), circumstances.seconds);
  return text;
}

Json report_json(const ProofResult& verdict, const ProofCircumstances& circumstances) {
  Json proved = Json::array(), refuted = Json::array(), not_proved = Json::array();
  for (const StepRange& range : verdict.proved) proved.push_back({{"from", range.first}, {"to", range.last}});
  for (const Discrepancy& finding : verdict.findings) refuted.push_back(finding_json(finding));
  for (const NotProved& entry : verdict.not_proved)
    not_proved.push_back({{"from", entry.steps.first}, {"to", entry.steps.last}, {"why", entry.why}});
  return {{"format", kProofFormat},
          {"run", circumstances.run},
          {"verdict", word_of(verdict)},
          {"steps_asked", count_steps(verdict.asked)},
          {"steps_proved", proved_of_asked(verdict)},
          {"steps_replayed", verdict.replayed},
          {"proved", proved},
          {"refuted", refuted},
          {"not_proved", not_proved},
          {"device", circumstances.device},
          {"ranks", circumstances.ranks},
          {"seconds", circumstances.seconds}};
}

}  // namespace lockstep
