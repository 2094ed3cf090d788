// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads lists of samples to leave out, and finds the samples in the training half.
#include "data/sets/leave_out.hpp"

#include "common/buffers.hpp"
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"
#include "data/sets/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

namespace lockstep {
namespace {

constexpr std::uint64_t kMostListBytes = std::uint64_t{256} << 20;

bool is_place(std::string_view text) {
  return text.find_first_not_of("0123456789") == text.npos;
}

/// A line without its comment.
std::string_view sample_on(std::string_view line) {
  line = trimmed(line);
  if (line == "#" || line.starts_with("##") || line.starts_with("# ") || line.starts_with("#\t")) return {};
  const std::string_view first = line.substr(0, line.find_first_of(" \t"));
  return is_place(first) && trimmed(line.substr(first.size())).starts_with('#') ? first : line;
}

std::string sha256_of(const std::vector<LeaveOutList::Entry>& entries) {
  std::vector<std::string_view> texts;
  for (const LeaveOutList::Entry& entry : entries) texts.emplace_back(entry.text);
  std::ranges::sort(texts);
  std::string all;
  for (const std::string_view text : texts) all.append(text).append("\n");
  return hex(sha256(std::as_bytes(std::span(all))));
}

struct FoundPlace {
  std::int32_t place = 0;
  std::string trouble = {};  ///< why there is none
};

FoundPlace place_at(const std::string& text, std::int64_t all) {
  const auto place = parse_whole<std::int64_t>(text);
  if (place && *place < all) return {static_cast<std::int32_t>(*place), ""};
  return {0, fmt::format("is not a place in the training half, which has 0 to {}", all - 1)};
}

/// Finds samples by their names, with one look at all of them.
class PlacesByName {
 public:
  PlacesByName(const LeaveOutList& list, const TrainTestData& data) {
    for (const LeaveOutList::Entry& entry : list.entries)
      if (!is_place(entry.text)) found_.emplace(entry.text, Found());
    if (!found_.empty()) look_through(data);
  }

  FoundPlace find(const std::string& name) const {
    const auto& [times, place] = found_.at(name);
    if (!has_names_) return {0, "is a name, and the samples of this set have none; write its place, from 0"};
    if (times == 0) return {0, fmt::format("is not a picture of the training half, which has {}", first_)};
    if (times > 1) return {0, fmt::format("is the name of {}; write their places", counted(times, "sample"))};
    return {place, ""};
  }

 private:
  struct Found {
    std::int64_t times = 0;
    std::int32_t place = 0;
  };

  void look_through(const TrainTestData& data) {
    const Dataset& train = data.train;
    const bool knows = !train.picture_name(0).empty();
    const auto listed = knows ? SampleNames() : read_sample_names(data, SetHalf::kTrain);
    if (!listed.warning.empty()) throw DataError(listed.warning);
    has_names_ = knows || !listed.names.empty();
    if (!has_names_) return;
    for (std::int32_t i = 0; i < train.size(); ++i) {
      const auto name = knows ? std::string(train.picture_name(i)) : at(listed.names, i);
      if (i == 0) first_ = quoted_text(name);
      const auto wanted = found_.find(name);
      if (wanted != found_.end() && wanted->second.times++ == 0) wanted->second.place = i;
    }
  }

  std::unordered_map<std::string, Found> found_;
  bool has_names_ = false;
  std::string first_;  ///< quoted
};

/// @param names  where to find samples by name; null: those are passed over
std::vector<std::int32_t> places_of(const LeaveOutList& list, std::int64_t all, const PlacesByName* names) {
  std::map<std::int32_t, std::size_t> line_of;  // [place]
  for (const LeaveOutList::Entry& entry : list.entries) {
    const auto fail = [&](const std::string& cause) {
      throw DatasetOptionError("leave_out", fmt::format("{}: line {}: {}", list.file, entry.line, cause));
    };
    const bool by_place = is_place(entry.text);
    if (!by_place && names == nullptr) continue;
    const auto [place, trouble] = by_place ? place_at(entry.text, all) : names->find(entry.text);
    if (!trouble.empty())
      fail(fmt::format("{} {}{}", quoted_text(entry.text), trouble,
                       entry.text.find('#') == entry.text.npos ? "" : "; a comment begins with '# '"));
    const auto [known, is_new] = line_of.try_emplace(place, entry.line);
    if (!is_new) fail(fmt::format("sample {} is on line {} already", place, known->second));
  }
  if (std::ssize(list.entries) >= all)
    throw DatasetOptionError("leave_out", fmt::format("{}: names all of {}, and none is left to train on",
                                                      list.file, counted(all, "training sample")));
  std::vector<std::int32_t> places;
  for (const auto& [place, line] : line_of) places.push_back(place);
  return places;
}

}  // namespace

LeaveOutList parse_leave_out(std::string_view text, const std::string& file) {
  LeaveOutList list{.file = file, .entries = {}, .sha256 = ""};
  std::unordered_map<std::string, std::size_t> line_of;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string sample(sample_on(whole));
    if (sample.empty()) continue;
    const auto fail = [&](const std::string& cause) {
      throw DataError(
          fmt::format("{}: line {}: {}; write a sample a line, its place in the training half or "
                      "the name of its picture",
                      file, line, cause));
    };
    if (printable_line(sample) != sample) fail("is not printable UTF-8");
    const auto [known, is_new] = line_of.try_emplace(sample, line);
    if (!is_new) fail(fmt::format("{} is on line {} already", quoted_text(sample), known->second));
    list.entries.push_back({sample, line});
  }
  if (list.entries.empty())
    throw DataError(fmt::format("{}: names no samples; write one a line, or remove data.leave_out", file));
  list.sha256 = sha256_of(list.entries);
  return list;
}

LeaveOutList read_leave_out(const std::string& file) {
  return parse_leave_out(
      as_text(read_file(file, kMostListBytes, " are too many for a list of samples; at most {}")), file);
}

std::vector<std::int32_t> left_out_places(const LeaveOutList& list, const TrainTestData& data) {
  const PlacesByName names(list, data);
  return places_of(list, data.train.size(), &names);
}

void check_left_out(const LeaveOutList& list, std::int64_t samples) {
  places_of(list, samples, nullptr);
}

}  // namespace lockstep
