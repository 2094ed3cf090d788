// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Help on the keys of a job: in --help, by `lockstep help KEY`, and on the reference pages.
#include "common/text_layout.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

namespace {

constexpr std::string_view kTrueOrFalse = "true or false";
constexpr int kRoomForATable = 110;  ///< columns from which name, default and text share a line
constexpr int kIndent = 4;

/// As on a command line: without the quotes of YAML, but of an empty text.
std::string usual_value(const JobKey& key) {
  std::string text = key.write(Job());
  if (text != "\"\"") std::erase(text, '"');
  return text;
}

/// "the update rule (one of sgd, adam)": what one line of help says of a key.
std::string meaning_in_full(const JobKey& key) {
  const std::string owners = owners_text(key, true);
  return fmt::format("{} ({}){}", key.meaning, key.expected,
                     owners.empty() ? "" : fmt::format(" [{}]", owners));
}

/// "0.02; adam: 0.001, adamw: 0.001, lars: 1"
std::string default_in_full(const JobKey& key) {
  const auto owners = owners_of(key);
  const bool is_required =
      key.path == "model" || (!owners.empty() && std::ranges::all_of(owners, &MemberKey::required));
  if (is_required) return "none, it must be given";
  std::vector<std::string> others;
  for (const auto& [name, fallback, required] : owners) {
    if (required) others.push_back(fmt::format("{}: none, it must be given", name));
    if (!required && !fallback.empty()) others.push_back(fmt::format("{}: {}", name, fallback));
  }
  return usual_value(key) + (others.empty() ? "" : fmt::format("; {}", fmt::join(others, ", ")));
}

std::string effect_on_weights(const JobKey& key) {
  constexpr std::string_view kDecides = "another value gives others, so it must stay when a run goes on";
  if (key.determines == Determines::kWeights || key.determines == Determines::kWeightsUnlessDefault)
    return std::string(kDecides);
  if (key.determines == Determines::kWeightsInWorldMode)
    return fmt::format("under parallel.determinism: world, {}", kDecides);
  if (key.path == "train.epochs")
    return "decides them only where a schedule is as long as the run: then it must stay";
  if (key.path == "data.per_rank_batch")
    return "decides them with the ranks; when a run goes on, the global batch must be the same";
  if (key.path == "parallel.strategy")
    return "hogwild gives others than data and pipeline; it may change when a run goes on";
  if (key.path == "parallel.kernels")
    return "vendor gives others than native and CPUs; it may change when a run goes on";
  return "not decided by it, so it may change when a run goes on";
}

}  // namespace

std::string example_of(const JobKey& key) {
  const std::string usual = usual_value(key);
  if (!key.example.empty()) return std::string(key.example);
  if (key.expected == kTrueOrFalse) return usual == "true" ? "false" : "true";
  for (const std::string_view choice : key.choices)
    if (choice != usual) return std::string(choice);
  constexpr std::string_view kSuchAs = "such as ";  // "a list of two numbers, such as [0.9, 0.999]"
  const std::size_t at = key.expected.find(kSuchAs);
  return at == key.expected.npos ? usual : key.expected.substr(at + kSuchAs.size());
}

std::vector<KeyFact> facts_of(const JobKey& key) {
  std::vector<KeyFact> facts = {{"takes", key.expected}, {"default", default_in_full(key)}};
  if (const std::string owners = owners_text(key); !owners.empty())
    facts.push_back({"read by", fmt::format("{} ({})", owners, choice_path(key))});
  facts.push_back({"weights", effect_on_weights(key)});
  if (!key.other_names.empty())
    facts.push_back({"elsewhere", fmt::format("{}", fmt::join(key.other_names, ", "))});
  const std::string example = key.path + "=" + example_of(key);
  const bool in_quotes = example.find_first_of(" [%*") != example.npos;
  facts.push_back({"example", in_quotes ? fmt::format("'{}'", example) : example});
  return facts;
}

std::vector<std::string> value_words(const JobKey& key) {
  if (!key.choices.empty()) return {key.choices.begin(), key.choices.end()};
  if (key.expected == kTrueOrFalse) return {"true", "false"};
  std::vector<std::string> words;
  for (const std::string_view word : {"auto", "never", "cpu", "cuda", "emulated"}) {
    const std::size_t at = key.expected.find(word);
    const std::size_t end = at + word.size();
    if (at != key.expected.npos &&
        (end == key.expected.size() || key.expected.find_first_of(", ", at) == end))
      words.emplace_back(word);
  }
  return words;
}

bool takes_path(const JobKey& key) {
  return key.expected.find("path") != std::string::npos ||
         key.expected.find("directory") != std::string::npos;
}

std::vector<const JobKey*> keys_asked_for(const std::string& question) {
  std::vector<const JobKey*> found;
  if (const JobKey* key = find_job_key(question)) return {key};
  const bool section = !question.empty() && is_job_section(question);
  for (const JobKey& key : job_schema())
    if (section ? key.path.starts_with(question + ".") : key.is_called(question)) found.push_back(&key);
  return found;
}

std::string key_help(const JobKey& key, int columns) {
  std::string text = key.path + "\n" + fill(key.meaning, columns, kIndent) + "\n";
  for (const auto& [name, said] : facts_of(key))
    text += fold(fmt::format("{:{}}{:<9}  {}", "", kIndent, name, said), columns) + "\n";
  return text;
}

std::string schema_help(int columns) {
  std::size_t width = 0;
  for (const JobKey& key : job_schema()) width = std::max(width, key.path.size());
  std::string help;
  for (const JobKey& key : job_schema()) {
    const std::string value = key.path == "model" ? "(required)" : usual_value(key);
    help +=
        columns >= kRoomForATable
            ? fold(fmt::format("{:<{}}  {:<10}  {}", key.path, width, value, meaning_in_full(key)), columns)
            : fmt::format("{}  {}\n{}", key.path, value, fill(meaning_in_full(key), columns, kIndent));
    help += "\n";
  }
  return help;
}

}  // namespace lockstep
