// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads the names of classes.txt, and those of samples, line by line.
#include "data/sets/names.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    lines.push_back(trimmed(line));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

const char* trouble_with_class_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kLongestClassName) return "is longer than 200 bytes";
  return printable_line(name) == name ? nullptr : "is not printable UTF-8";
}

std::vector<std::string> parse_class_names(std::string_view text, const std::string& file, std::size_t most) {
  std::vector<std::string> names;
  std::unordered_map<std::string_view, std::size_t> class_of;
  for (const std::string_view line : lines_of(text)) {
    const std::size_t number = names.size() + 1;
    const auto fail = [&](const std::string& cause) {
      throw DataError(fmt::format("{}: line {}: {}; write one class name a line, in the order of the labels",
                                  file, number, cause));
    };
    if (number > most) fail(fmt::format("more than {} classes", most));
    if (const char* trouble = trouble_with_class_name(line)) fail(fmt::format("the name {}", trouble));
    const auto [twin, is_new] = class_of.try_emplace(line, names.size());
    if (!is_new) fail(fmt::format("{} is the name of class {} already", quoted_text(line), twin->second));
    names.emplace_back(line);
  }
  if (names.empty()) throw DataError(fmt::format("{}: no class names; write one a line", file));
  return names;
}

std::vector<std::string> read_class_names(const std::filesystem::path& file, std::size_t most) {
  const auto bytes =
      read_file(file, 2 * most * kLongestClassName, " are too many for a list of class names; at most {}");
  return parse_class_names(as_text(bytes), file.string(), most);
}

std::optional<SetHalf> half_called(const std::string& name) {
  static constexpr std::pair<std::string_view, SetHalf> kNames[] = {
      {"train", SetHalf::kTrain},          {"training", SetHalf::kTrain}, {"test", SetHalf::kTest},
      {"testing", SetHalf::kTest},         {"val", SetHalf::kValidation}, {"valid", SetHalf::kValidation},
      {"validation", SetHalf::kValidation}};
  const std::string word = in_small_letters(name);
  const auto known = std::ranges::find(kNames, word, [](const auto& row) { return row.first; });
  return known == std::end(kNames) ? std::nullopt : std::optional(known->second);
}

std::vector<std::string> numbered_classes(int classes) {
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

// Names of samples: a name as a line, and a list of them that may be damaged.

namespace {

/// Room for a list of three million pictures; and for a path of 4,096 bytes, each escaped.
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
constexpr int kVersionOfConversion = 1;
constexpr std::size_t kMostBytesOfLine = std::size_t{32} << 10;

/// The line without its end, taken off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  if (end == text.npos) throw DataError("its last line has no end");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::string name_on(std::string_view line, std::size_t number) {
  if (line.size() <= kMostBytesOfLine)
    if (const auto json = parse_json_or_discard(line); json.is_string())
      if (auto name = json.get<std::string>(); !name.empty()) return name;
  throw DataError(fmt::format("line {} is not a name", number));
}

std::vector<std::string> parse_list(std::string_view text, std::int64_t samples) {
  std::vector<std::string> names;
  while (!text.empty() && std::ssize(names) < samples)
    names.push_back(name_on(take_line(text), names.size() + 1));
  if (!text.empty() || std::ssize(names) != samples)
    throw DataError(fmt::format("it names {} than the {} that there are", text.empty() ? "fewer" : "more",
                                counted(samples, "sample")));
  return names;
}

}  // namespace

std::string sample_names_file(std::string_view half) {
  return fmt::format("{}-names.jsonl", half);
}

std::string sample_name_line(const std::filesystem::path& picture) {
  return json_text_in_ascii(nlohmann::ordered_json(picture.generic_string())) + "\n";
}

std::string conversion_text(PictureFit fit) {
  const auto name = std::ranges::find(kPictureFits, fit, &std::pair<std::string_view, PictureFit>::second);
  return json_text_in_ascii(
             nlohmann::ordered_json{{"lockstep_conversion", kVersionOfConversion}, {"fit", name->first}}) +
         "\n";
}

PictureFit read_fit(Env& env, const std::filesystem::path& directory) {
  constexpr std::uint64_t kMostBytesOfConversion = 4096;
  const std::string file = (directory / kConversionFile).string();
  if (!env.exists(file)) return PictureFit::kSqueeze;
  const auto bytes = env.read_first(file, kMostBytesOfConversion);
  const auto json = parse_json_or_discard(as_text(bytes));
  const auto version =
      json.is_object() ? json.value("lockstep_conversion", nlohmann::json()) : nlohmann::json();
  if (version.is_number_unsigned() && version > kVersionOfConversion)
    throw DataError(fmt::format("{}: version {} of the format, and this program reads {}; take a newer one",
                                file, version.get<std::uint64_t>(), kVersionOfConversion));
  for (const auto& [name, fit] : kPictureFits)
    if (version == kVersionOfConversion && json.value("fit", nlohmann::json()) == name) return fit;
  throw DataError(fmt::format("{}: no known `fit` recorded; convert the pictures again", file));
}

SampleNames read_sample_names(Env& env, const std::filesystem::path& list, std::int64_t samples) {
  if (!env.exists(list.string())) return {};
  try {
    const auto bytes = env.read_first(list.string(), kMostBytes + 1);
    if (bytes.size() > kMostBytes) throw DataError(fmt::format("it has more than {} bytes", kMostBytes));
    return {.names = parse_list(as_text(bytes), samples), .warning = ""};
  } catch (const Error& error) {
    return {.names = {},
            .warning = fmt::format(
                "{}: {}; pictures are shown without their names: convert them again, or remove the list",
                list.string(), error.what())};
  }
}

SampleNames read_sample_names(const TrainTestData& data, SetHalf half) {
  if (data.directory.empty()) return {};
  const std::int64_t samples = half == SetHalf::kTrain  ? data.train_in_file()
                               : half == SetHalf::kTest ? data.test_in_file()
                                                        : data.validation.size();
  return read_sample_names(Env::posix(),
                           std::filesystem::path(data.directory) / sample_names_file(name_of(half)), samples);
}

bool is_ending_of_picture(std::string_view ending) {
  constexpr std::string_view kEndings[] = {"png",  "jpg", "jpeg", "jpe", "jfif",
                                           "webp", "gif", "bmp",  "pgm", "ppm"};
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

}  // namespace lockstep
