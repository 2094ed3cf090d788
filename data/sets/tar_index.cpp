// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the entries of an archive to samples, and those to a file and back.
#include "data/sets/tar_index.hpp"

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/yaml.hpp"
#include "data/sets/shards.hpp"

#include <cctype>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <optional>

namespace lockstep {
namespace {

constexpr int kVersionOfTarIndex = 1;

/// A name as WebDataset divides it: at the first dot of its last part.
struct TarName {
  std::string_view key;
  std::string ending;  ///< in small letters
};

TarName divided(const std::string& name) {
  const auto slash = name.rfind('/');
  const auto dot = name.find('.', slash == name.npos ? 0 : slash + 1);
  if (dot == name.npos) return {};
  TarName result{std::string_view(name).substr(0, dot), name.substr(dot + 1)};
  std::ranges::transform(result.ending, result.ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_ending_of_picture(std::string_view ending) {
  constexpr std::string_view kEndings[] = {"jpg", "jpeg", "png", "webp", "gif", "bmp", "ppm", "pgm"};
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

/// Puts the entries of an archive together.
class TarGrouping {
 public:
  explicit TarGrouping(const TarReader::ReadAt& read, const TarReader& reader)
      : read_(read), reader_(reader) {}

  void add(TarEntry entry) {
    const TarName name = divided(entry.name);
    if (name.key.empty()) return;
    if (name.key != key_) {
      finish();
      key_ = name.key;
    }
    if (is_ending_of_picture(name.ending)) {
      if (picture_) fail(entry, "a second picture");
      picture_ = std::move(entry);
    } else if (name.ending == "cls") {
      if (label_) fail(entry, "a second .cls");
      label_ = read_label(entry);
    }
  }

  void finish() {
    if (picture_ && !label_) fail(*picture_, "no .cls with the label behind or before it");
    if (label_ && !picture_)
      reader_.fail(0, fmt::format("sample {} has a .cls and no picture", std::string(key_)));
    if (picture_) samples_.push_back({*std::move(picture_), *label_});
    picture_.reset();
    label_.reset();
  }

  std::vector<TarSample> take() {
    finish();
    std::vector<std::string_view> keys;
    for (const TarSample& sample : samples_) keys.push_back(divided(sample.picture.name).key);
    std::ranges::sort(keys);
    if (const auto twin = std::ranges::adjacent_find(keys); twin != keys.end())
      reader_.fail(0, fmt::format("sample {} is there twice", std::string(*twin)));
    return std::move(samples_);
  }

 private:
  [[noreturn]] void fail(const TarEntry& entry, const char* cause) const {
    reader_.fail(entry.offset, fmt::format("{}: its sample has {}", entry.name, cause));
  }

  std::int32_t read_label(const TarEntry& entry) const {
    constexpr std::uint64_t kMostDigits = 32;
    std::string text(std::min(entry.bytes, kMostDigits), '\0');
    text.resize(read_(entry.offset, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    const auto number = parse_int64(trimmed(text));
    if (entry.bytes <= kMostDigits && number && *number >= 0 && *number < kMostShardClasses)
      return static_cast<std::int32_t>(*number);
    reader_.fail(entry.offset, fmt::format("{}: holds no label, a whole number from 0 to {}", entry.name,
                                           kMostShardClasses - 1));
  }

  const TarReader::ReadAt& read_;
  const TarReader& reader_;
  std::vector<TarSample> samples_;
  std::string key_;
  std::optional<TarEntry> picture_;
  std::optional<std::int32_t> label_;
};

// The index.

/// What must stand in its first line.
std::string head_of(std::uint64_t bytes, std::int64_t changed, std::size_t samples) {
  return json_text_in_ascii(nlohmann::ordered_json{{"lockstep_tar_index", kVersionOfTarIndex},
                                                   {"bytes", bytes},
                                                   {"changed", changed},
                                                   {"samples", samples}}) +
         "\n";
}

std::optional<TarSample> sample_on(std::string_view line) {
  std::int64_t numbers[3] = {};
  for (std::int64_t& number : numbers) {
    const auto space = line.find(' ');
    const auto value = parse_int64(line.substr(0, space));
    if (space == line.npos || !value || *value < 0) return std::nullopt;
    number = *value;
    line.remove_prefix(space + 1);
  }
  const auto [offset, bytes, label] = numbers;
  if (line.empty() || label >= kMostShardClasses) return std::nullopt;
  return TarSample{{std::string(line), static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes)},
                   static_cast<std::int32_t>(label)};
}

}  // namespace

std::vector<TarSample> find_tar_samples(const TarReader::ReadAt& read, std::uint64_t bytes,
                                        const std::string& archive) {
  TarReader reader(read, bytes, archive);
  TarGrouping samples(read, reader);
  while (auto entry = reader.next()) samples.add(*std::move(entry));
  return samples.take();
}

std::string tar_index_text(std::uint64_t bytes, std::int64_t changed, const std::vector<TarSample>& samples) {
  std::string text = head_of(bytes, changed, samples.size());
  for (const auto& [picture, label] : samples)
    fmt::format_to(std::back_inserter(text), "{} {} {} {}\n", picture.offset, picture.bytes, label,
                   picture.name);
  return text + hex(sha256(std::as_bytes(std::span(text)))) + "\n";
}

bool parse_tar_index(std::string_view text, const std::string& file, std::uint64_t bytes,
                     std::int64_t changed, std::vector<TarSample>& samples) {
  constexpr std::size_t kDigestLine = 65;
  if (text.size() < kDigestLine) return false;
  const std::string_view body = text.substr(0, text.size() - kDigestLine);
  if (text.substr(body.size()) != hex(sha256(std::as_bytes(std::span(body)))) + "\n") return false;
  const std::size_t lines = static_cast<std::size_t>(std::ranges::count(body, '\n'));
  if (lines == 0 || !body.starts_with(head_of(bytes, changed, lines - 1)) || body.back() != '\n')
    return false;
  samples.clear();
  for (std::size_t at = body.find('\n') + 1; at < body.size();) {
    const std::string_view line = body.substr(at, body.find('\n', at) - at);
    at += line.size() + 1;
    auto sample = sample_on(line);
    if (!sample || sample->picture.offset > bytes || sample->picture.bytes > bytes - sample->picture.offset)
      throw DataError(
          fmt::format("{}: sample {} is none that an archive of {} bytes can hold; remove the file, it "
                      "is made again",
                      file, samples.size(), bytes));
    samples.push_back(*std::move(sample));
  }
  return true;
}

std::vector<TarSample> indexed_tar_samples(const StoredFile& archive) {
  constexpr std::uint64_t kHead = 1024;
  const std::string file = archive.name() + ".index";
  std::vector<TarSample> samples;
  if (Env::posix().exists(file)) {
    const auto bytes = Env::posix().read_first(file, archive.size() + kHead);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (parse_tar_index(text, file, archive.size(), archive.changed(), samples)) return samples;
  }
  samples = find_tar_samples(
      [&](std::uint64_t offset, std::span<std::uint8_t> to) { return archive.read(offset, to); },
      archive.size(), archive.name());
  const std::string text = tar_index_text(archive.size(), archive.changed(), samples);
  try {
    replace_file(Env::posix(), file, std::as_bytes(std::span(text)));
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): the next start reads the headers again
  }
  return samples;
}

}  // namespace lockstep
