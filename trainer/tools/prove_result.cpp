// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The same result as text, as JSON, and back from the JSON that ranks hand to rank 0.
#include "trainer/tools/prove_result.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {
namespace {

template <class Json>
Json ranges_json(const std::vector<StepRange>& ranges) {
  Json list = Json::array();
  for (const StepRange& range : ranges) list.push_back({{"from", range.first}, {"to", range.last}});
  return list;
}

std::vector<StepRange> ranges_from(const nlohmann::json& list) {
  std::vector<StepRange> ranges;
  for (const auto& entry : list)
    ranges.push_back({entry.at("from").get<std::int64_t>(), entry.at("to").get<std::int64_t>()});
  return ranges;
}

template <class Json>
Json finding_json(const Discrepancy& finding) {
  Json json;
  json["step"] = finding.step;
  json["what"] = finding.what;
  if (!finding.parameter.empty()) json["parameter"] = finding.parameter;
  if (finding.bucket) json["bucket"] = *finding.bucket;
  if (finding.flipped) {
    json["element"] = finding.flipped->index;
    json["bit"] = finding.flipped->bit;
  }
  if (finding.rank) {
    json["rank"] = finding.rank->number;
    json["host"] = finding.rank->place.host;
    json["device"] = finding.rank->place.device;
    if (!finding.rank->place.uuid.empty()) json["uuid"] = finding.rank->place.uuid;
  }
  json["text"] = finding.text;
  json["cause"] = finding.cause;
  return json;
}

Discrepancy finding_from(const nlohmann::json& json) {
  Discrepancy finding;
  finding.step = json.at("step").get<std::int64_t>();
  finding.what = json.at("what").get<std::string>();
  finding.parameter = json.value("parameter", "");
  if (json.contains("bucket")) finding.bucket = json.at("bucket").get<int>();
  if (json.contains("bit"))
    finding.flipped = {json.at("element").get<std::vector<std::int64_t>>(), json.at("bit").get<int>()};
  if (json.contains("rank"))
    finding.rank = {json.at("rank").get<int>(),
                    {.host = json.at("host").get<std::string>(),
                     .device = json.at("device").get<std::string>(),
                     .uuid = json.value("uuid", "")}};
  finding.text = json.at("text").get<std::string>();
  finding.cause = json.at("cause").get<std::string>();
  finding.first_replayed = json.value("first_replayed", false);
  return finding;
}

template <class Json>
Json not_proved_json(const std::vector<NotProved>& list) {
  Json json = Json::array();
  for (const NotProved& entry : list)
    json.push_back({{"from", entry.steps.first}, {"to", entry.steps.last}, {"why", entry.why}});
  return json;
}

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

nlohmann::json to_json(const ProofResult& verdict) {
  using Json = nlohmann::json;
  Json json;
  json["asked"] = ranges_json<Json>(verdict.asked);
  json["proved"] = ranges_json<Json>(verdict.proved);
  json["findings"] = Json::array();
  for (const Discrepancy& finding : verdict.findings) {
    json["findings"].push_back(finding_json<Json>(finding));
    json["findings"].back()["first_replayed"] = finding.first_replayed;
  }
  json["not_proved"] = not_proved_json<Json>(verdict.not_proved);
  json["replayed"] = verdict.replayed;
  json["lacks_arithmetic"] = verdict.lacks_arithmetic;
  return json;
}

ProofResult result_from_json(const nlohmann::json& json) {
  ProofResult verdict;
  verdict.asked = ranges_from(json.at("asked"));
  verdict.proved = ranges_from(json.at("proved"));
  for (const auto& entry : json.at("findings")) verdict.findings.push_back(finding_from(entry));
  for (const auto& entry : json.at("not_proved")) {
    verdict.not_proved.push_back({{entry.at("from").get<std::int64_t>(), entry.at("to").get<std::int64_t>()},
                                  entry.at("why").get<std::string>()});
  }
  verdict.replayed = json.at("replayed").get<std::int64_t>();
  verdict.lacks_arithmetic = json.at("lacks_arithmetic").get<bool>();
  return verdict;
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

nlohmann::ordered_json report_json(const ProofResult& verdict, const ProofCircumstances& circumstances) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["format"] = kProofFormat;
  json["run"] = circumstances.run;
  json["verdict"] = word_of(verdict);
  json["steps_asked"] = count_steps(verdict.asked);
  json["steps_proved"] = proved_of_asked(verdict);
  json["steps_replayed"] = verdict.replayed;
  json["proved"] = ranges_json<Json>(verdict.proved);
  json["refuted"] = Json::array();
  for (const Discrepancy& finding : verdict.findings) json["refuted"].push_back(finding_json<Json>(finding));
  json["not_proved"] = not_proved_json<Json>(verdict.not_proved);
  json["device"] = circumstances.device;
  json["ranks"] = circumstances.ranks;
  json["seconds"] = circumstances.seconds;
  return json;
}

}  // namespace lockstep
