// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing a name as a line, and reading a list of them that may be damaged.
#include "data/sets/sample_names.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// What a list of three million pictures takes; and a path of 4,096 bytes, each escaped.
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
constexpr int kVersionOfConversion = 1;
constexpr std::size_t kMostBytesOfLine = std::size_t{32} << 10;

/// The line without its end, taken off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  if (end == text.npos) throw DataError(fmt::format("its last line has no end"));
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::string name_on(std::string_view line, std::size_t number) {
  if (line.size() <= kMostBytesOfLine)
    if (const auto json = parse_json_or_discard(line); json.is_string()) return json.get<std::string>();
  throw DataError(fmt::format("line {} is no name", number));
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

std::filesystem::path sample_names_in(const std::filesystem::path& directory, SetHalf half) {
  std::error_code ignored;
  const auto found = directory / sample_names_file(name_of(half));
  const bool is_in_idx_files = half == SetHalf::kTest && !std::filesystem::exists(found, ignored);
  return is_in_idx_files ? directory / sample_names_file("t10k") : found;
}

std::filesystem::path sample_names_beside(const std::filesystem::path& images) {
  const std::string name = images.filename().string();
  const auto end_of_half = name.find("-images-idx");
  if (end_of_half == name.npos || end_of_half == 0) return {};
  return images.parent_path() / sample_names_file(name.substr(0, end_of_half));
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
  const auto json = parse_json_or_discard({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto version =
      json.is_object() ? json.value("lockstep_conversion", nlohmann::json()) : nlohmann::json();
  if (version.is_number_unsigned() && version > kVersionOfConversion)
    throw DataError(fmt::format("{}: version {} of the format, and this program reads {}; take a newer one",
                                file, version.get<std::uint64_t>(), kVersionOfConversion));
  for (const auto& [name, fit] : kPictureFits)
    if (version == kVersionOfConversion && json.value("fit", nlohmann::json()) == name) return fit;
  throw DataError(fmt::format("{}: says of no fit how the pictures were made; convert them again", file));
}

SampleNames read_sample_names(Env& env, const std::filesystem::path& list, std::int64_t samples) {
  if (list.empty() || !env.exists(list.string())) return {};
  try {
    const auto bytes = env.read_first(list.string(), kMostBytes + 1);
    if (bytes.size() > kMostBytes) throw DataError(fmt::format("it has more than {} bytes", kMostBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {.names = parse_list(text, samples), .warning = ""};
  } catch (const Error& error) {
    return {.names = {},
            .warning = fmt::format(
                "{}: {}; pictures are shown without their names: convert them again, or remove the list",
                list.string(), error.what())};
  }
}

}  // namespace lockstep
