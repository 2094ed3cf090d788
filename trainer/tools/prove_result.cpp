// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The same result as text, as JSON, and back from the JSON that ranks hand to rank 0.
#include "trainer/tools/prove_result.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/json_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {
namespace {

constexpr auto kRangeFields = [](auto&& archive, StepRange& range) {
  archive("from", range.first);
  archive("to", range.last);
};

constexpr auto kNotProvedFields = [](auto&& archive, NotProved& entry) {
  kRangeFields(archive, entry.steps);
  archive("why", entry.why);
};

constexpr auto kFindingFields = [](auto&& archive, Discrepancy& finding) {
  archive("step", finding.step);
  archive("what", finding.what);
  optional_field(archive, "parameter", finding.parameter);
  optional_field(archive, "bucket", finding.bucket);
  if (archive.has("bit", finding.flipped.has_value())) {
    archive("element", held(finding.flipped).index);
    archive("bit", held(finding.flipped).bit);
  }
  if (archive.has("rank", finding.rank.has_value())) {
    WrongRank& rank = held(finding.rank);
    archive("rank", rank.number);
    archive("host", rank.place.host);
    archive("device", rank.place.device);
    optional_field(archive, "uuid", rank.place.uuid);
  }
  archive("text", finding.text);
  archive("cause", finding.cause);
};

/// Between ranks.
constexpr auto kResultFields = [](auto&& archive, ProofResult& verdict) {
  archive.list("asked", "asked", verdict.asked, kRangeFields);
  archive.list("proved", "proved", verdict.proved, kRangeFields);
  archive.list("findings", "findings", verdict.findings, [](auto&& inner, Discrepancy& finding) {
    kFindingFields(inner, finding);
    inner("first_replayed", finding.first_replayed);
  });
  archive.list("not_proved", "not_proved", verdict.not_proved, kNotProvedFields);
  archive("replayed", verdict.replayed);
  archive("lacks_arithmetic", verdict.lacks_arithmetic);
};

std::string place_of(const Discrepancy& finding) {
  std::string place = "step " + with_thousands(finding.step);
  if (finding.bucket) place += fmt::format(", bucket {}", *finding.bucket);
  if (!finding.parameter.empty()) place += ", " + finding.parameter;
  return place;
}

/// What is proved without being asked for does not count.
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

nlohmann::ordered_json to_json(const ProofResult& verdict) {
  return json_of_fields(verdict, kResultFields);
}

ProofResult result_from_json(const nlohmann::json& json) {
  return read_fields<ProofResult>(json, "a rank's result", kResultFields);
}

void refute(ProofResult& verdict, std::int64_t step, const char* what, std::string text, std::string cause) {
  Discrepancy finding;
  finding.step = step;
  finding.what = what;
  finding.text = std::move(text);
  finding.cause = std::move(cause);
  verdict.findings.push_back(std::move(finding));
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
    text += fmt::format("not proved: {}: {}\n", describe(entry.steps), entry.why);
  text += fmt::format("proved: {}\n", describe(verdict.proved));
  text += fmt::format("{}: {}, {} of {} proved; {} replayed on {}, {}, in {:.1f} s\n", circumstances.run,
                      word_of(verdict), with_thousands(proved_of_asked(verdict)),
                      counted(count_steps(verdict.asked), "step"), with_thousands(verdict.replayed),
                      circumstances.device, counted(circumstances.ranks, "rank"), circumstances.seconds);
  return text;
}

nlohmann::ordered_json report_json(ProofResult verdict, const ProofCircumstances& circumstances) {
  nlohmann::ordered_json json = {{"format", kProofFormat},
                                 {"run", circumstances.run},
                                 {"verdict", word_of(verdict)},
                                 {"steps_asked", count_steps(verdict.asked)},
                                 {"steps_proved", proved_of_asked(verdict)},
                                 {"steps_replayed", verdict.replayed}};
  JsonFieldsWriter archive(json);
  archive.list("proved", "proved", verdict.proved, kRangeFields);
  archive.list("refuted", "refuted", verdict.findings, kFindingFields);
  archive.list("not_proved", "not_proved", verdict.not_proved, kNotProvedFields);
  archive("device", circumstances.device);
  archive("ranks", circumstances.ranks);
  archive("seconds", circumstances.seconds);
  return json;
}

}  // namespace lockstep
