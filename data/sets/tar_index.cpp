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

constexpr int kVersionOfNumbers = 1, kVersionOfWords = 2;

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
  TarGrouping(const TarReader::ReadAt& read, const TarReader& reader, const std::string& label)
      : read_(read), reader_(reader), key_of_label_(label) {}

  void add(TarEntry entry) {
    const TarName name = divided(entry.name);
    if (name.key.empty()) return;
    if (name.key != key_of_sample_) {
      finish();
      key_of_sample_ = name.key;
    }
    if (is_ending_of_picture(name.ending)) {
      if (picture_) fail(entry, "a second picture");
      picture_ = std::move(entry);
    } else if (name.ending == ending_of_label()) {
      if (label_) fail(entry, "a second ." + name.ending);
      label_ = read_label(entry);
    }
  }

  void finish() {
    if (picture_ && !label_)
      fail(*picture_, fmt::format("no .{} with the label behind or before it", ending_of_label()));
    if (label_ && !picture_)
      reader_.fail(0, fmt::format("sample {} has a .{} and no picture", key_of_sample_, ending_of_label()));
    if (picture_) samples_.push_back({*std::move(picture_), *std::move(label_)});
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
  const char* ending_of_label() const { return key_of_label_ == kLabelInCls ? "cls" : "json"; }

  [[noreturn]] void fail(const TarEntry& entry, const std::string& cause) const {
    reader_.fail(entry.offset, fmt::format("{}: its sample has {}", entry.name, cause));
  }

  std::string read_label(const TarEntry& entry) const {
    const bool is_cls = key_of_label_ == kLabelInCls;
    const std::uint64_t most = is_cls ? kMostBytesOfCls : kMostBytesOfJson;
    std::string text(std::min(entry.bytes, most), '\0');
    text.resize(read_(entry.offset, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
    const auto label = is_cls ? label_of_cls(text) : label_of_json(text, key_of_label_);
    if (label && entry.bytes <= most) return *label;
    reader_.fail(entry.offset,
                 is_cls
                     ? fmt::format("{}: holds no label, a whole number from 0 to {}, or several", entry.name,
                                   kMostShardClasses - 1)
                     : fmt::format("{}: has no label under the key {}: a whole number from 0 to {}, a name, "
                                   "or a list of them",
                                   entry.name, quoted_text(key_of_label_), kMostShardClasses - 1));
  }

  const TarReader::ReadAt& read_;
  const TarReader& reader_;
  std::vector<TarSample> samples_;
  std::string key_of_sample_;
  const std::string& key_of_label_;
  std::optional<TarEntry> picture_;
  std::optional<std::string> label_;
};

// The index.

/// What must stand in its first line. @param label  its key, of version 2
std::string head_of(int version, std::uint64_t bytes, std::int64_t changed, const std::string& label,
                    std::size_t samples) {
  nlohmann::ordered_json head = {
      {"lockstep_tar_index", version}, {"bytes", bytes}, {"changed", changed}, {"samples", samples}};
  if (version == kVersionOfWords) head["label"] = label;
  return json_text_in_ascii(head) + "\n";
}

bool is_number(const TarSample& sample) {
  return parse_int64(sample.label).has_value();
}

/// Up to the next space, which is taken off `line`, too; empty: there is none.
std::string_view take_word(std::string_view& line) {
  const auto space = line.find(' ');
  if (space == line.npos) return {};
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(space + 1);
  return word;
}

std::optional<TarSample> sample_on(std::string_view line) {
  const auto offset = parse_int64(take_word(line)), bytes = parse_int64(take_word(line));
  const std::string_view label = take_word(line);
  if (!offset || !bytes || *offset < 0 || *bytes < 0 || line.empty() || !is_tar_label(label))
    return std::nullopt;
  return TarSample{
      {std::string(line), static_cast<std::uint64_t>(*offset), static_cast<std::uint64_t>(*bytes)},
      std::string(label)};
}

}  // namespace

std::vector<TarSample> find_tar_samples(const TarReader::ReadAt& read, std::uint64_t bytes,
                                        const std::string& archive, const std::string& label) {
  TarReader reader(read, bytes, archive);
  TarGrouping samples(read, reader, label);
  while (auto entry = reader.next()) samples.add(*std::move(entry));
  return samples.take();
}

std::string tar_index_text(std::uint64_t bytes, std::int64_t changed, const std::string& label,
                           const std::vector<TarSample>& samples) {
  const bool numbers = label == kLabelInCls && std::ranges::all_of(samples, is_number);
  std::string text =
      head_of(numbers ? kVersionOfNumbers : kVersionOfWords, bytes, changed, label, samples.size());
  for (const auto& [picture, word] : samples)
    fmt::format_to(std::back_inserter(text), "{} {} {} {}\n", picture.offset, picture.bytes, word,
                   picture.name);
  return text + hex(sha256(std::as_bytes(std::span(text)))) + "\n";
}

bool parse_tar_index(std::string_view text, const std::string& file, std::uint64_t bytes,
                     std::int64_t changed, const std::string& label, std::vector<TarSample>& samples) {
  constexpr std::size_t kDigestLine = 65;
  if (text.size() < kDigestLine) return false;
  const std::string_view body = text.substr(0, text.size() - kDigestLine);
  if (text.substr(body.size()) != hex(sha256(std::as_bytes(std::span(body)))) + "\n") return false;
  const std::size_t lines = static_cast<std::size_t>(std::ranges::count(body, '\n'));
  const auto begins_as = [&](int version) {
    return lines > 0 && body.starts_with(head_of(version, bytes, changed, label, lines - 1));
  };
  const bool numbers = label == kLabelInCls && begins_as(kVersionOfNumbers);
  if ((!numbers && !begins_as(kVersionOfWords)) || body.back() != '\n') return false;
  samples.clear();
  for (std::size_t at = body.find('\n') + 1; at < body.size();) {
    const std::string_view line = body.substr(at, body.find('\n', at) - at);
    at += line.size() + 1;
    auto sample = sample_on(line);
    if (!sample || (numbers && !is_number(*sample)) || sample->picture.offset > bytes ||
        sample->picture.bytes > bytes - sample->picture.offset)
      throw DataError(
          fmt::format("{}: sample {} is none that an archive of {} bytes can hold; remove the file, it "
                      "is made again",
                      file, samples.size(), bytes));
    samples.push_back(*std::move(sample));
  }
  return true;
}

std::vector<TarSample> indexed_tar_samples(const StoredFile& archive, const std::string& label) {
  constexpr std::uint64_t kHead = 1024;
  const std::string file = archive.name() + ".index";
  std::vector<TarSample> samples;
  if (Env::posix().exists(file)) {
    const auto bytes = Env::posix().read_first(file, archive.size() + kHead);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (parse_tar_index(text, file, archive.size(), archive.changed(), label, samples)) return samples;
  }
  samples = find_tar_samples(
      [&](std::uint64_t offset, std::span<std::uint8_t> to) { return archive.read(offset, to); },
      archive.size(), archive.name(), label);
  const std::string text = tar_index_text(archive.size(), archive.changed(), label, samples);
  try {
    replace_file(Env::posix(), file, std::as_bytes(std::span(text)));
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): the next start reads the headers again
  }
  return samples;
}

}  // namespace lockstep
