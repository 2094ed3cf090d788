// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the entries of an archive to samples.
#include "data/sets/tar_samples.hpp"

#include "common/printable.hpp"
#include "data/sets/names.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

/// A name as WebDataset divides it: at the first dot of its last part.
struct TarName {
  std::string_view key;
  std::string ending;  ///< in small letters
};

TarName divided(const std::string& name) {
  const auto slash = name.rfind('/');
  const auto dot = name.find('.', slash == name.npos ? 0 : slash + 1);
  if (dot == name.npos) return {};
  return {std::string_view(name).substr(0, dot), in_small_letters(name.substr(dot + 1))};
}

/// Puts the entries of an archive together.
class TarGrouping {
 public:
  TarGrouping(const TarReader& reader, const std::string& label) : reader_(reader), key_of_label_(label) {}

  void add(TarEntry entry) {
    const TarName name = divided(entry.name);
    if (name.key.empty()) return;
    if (name.key != key_of_sample_) {
      finish();
      key_of_sample_ = name.key;
    }
    note_dots(entry, name);
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
      fail(*picture_, fmt::format("no .{} with the label before or after it", ending_of_label()));
    if (label_ && !picture_)
      reader_.fail(0, fmt::format("sample {} has a .{} and no picture", key_of_sample_, ending_of_label()));
    if (!picture_ && dotted_picture_ && dotted_label_) fail_for_dots(*dotted_picture_);
    if (picture_) samples_.push_back({*std::move(picture_), *std::move(label_)});
    for (auto* entry : {&picture_, &dotted_picture_}) entry->reset();
    dotted_label_ = false;
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

  /// Several dots: of other files of a sample, or in what someone means as its name.
  void note_dots(const TarEntry& entry, const TarName& name) {
    const auto last = name.ending.rfind('.');
    if (last == name.ending.npos || name.key.ends_with('/'))
      return;  // macOS has dir/._1.jpg beside dir/1.jpg
    const std::string_view ending = std::string_view(name.ending).substr(last + 1);
    if (is_ending_of_picture(ending) && !dotted_picture_) dotted_picture_ = entry;
    dotted_label_ = dotted_label_ || ending == ending_of_label();
  }

  [[noreturn]] void fail_for_dots(const TarEntry& entry) const {
    const TarName name = divided(entry.name);
    std::string better = name.ending;
    std::replace(better.begin(), better.begin() + static_cast<std::ptrdiff_t>(better.rfind('.')), '.', '-');
    reader_.fail(
        entry.offset,
        fmt::format("{}: a sample's name ends at the first dot, so this is sample {} with the ending "
                    ".{}; call it {}-{}",
                    entry.name, name.key, name.ending, name.key, better));
  }

  std::string read_label(const TarEntry& entry) const {
    const bool is_cls = key_of_label_ == kLabelInCls;
    const std::uint64_t most = is_cls ? kMostBytesOfCls : kMostBytesOfJson;
    const std::string text = reader_.read_text(entry.offset, std::min(entry.bytes, most));
    const auto label = is_cls ? label_of_cls(text) : label_of_json(text, key_of_label_);
    if (label && entry.bytes <= most) return *label;
    reader_.fail(entry.offset,
                 is_cls
                     ? fmt::format("{}: holds no label, a whole number from 0 to {}, several, or a name",
                                   entry.name, kMostShardClasses - 1)
                     : fmt::format("{}: has no label under the key {}: a whole number from 0 to {}, a name, "
                                   "or a list of them",
                                   entry.name, quoted_text(key_of_label_), kMostShardClasses - 1));
  }

  const TarReader& reader_;
  std::vector<TarSample> samples_;
  std::string key_of_sample_;
  const std::string& key_of_label_;
  std::optional<TarEntry> picture_, dotted_picture_;
  bool dotted_label_ = false;
  std::optional<std::string> label_;
};

}  // namespace

std::vector<TarSample> find_tar_samples(TarReader archive, const std::string& label) {
  TarGrouping samples(archive, label);
  while (auto entry = archive.next()) samples.add(*std::move(entry));
  return samples.take();
}

}  // namespace lockstep
