// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Digests of all samples are sorted, so that equal ones are together.
#include "data/sets/duplicates.hpp"

#include "common/buffers.hpp"
#include "common/digest.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "data/batch_loader.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

struct DigestedSample {
  std::array<std::uint64_t, 2> digest{};
  std::uint32_t part : 2 = 0;    ///< 0 train, 1 validation, 2 test
  std::uint32_t label : 30 = 0;  ///< kMostShardClasses and label sets are fewer
  std::int32_t index = 0;        ///< in the part

  /// Puts equal samples together, in the order of parts and of their places.
  auto order() const { return std::tuple(digest, part, index); }
};

constexpr std::uint32_t kTestPart = 2;

class DuplicateFinder {
 public:
  explicit DuplicateFinder(const TrainTestData& data)
      : data_(data), parts_{&data.train, &data.validation, &data.test} {}

  Duplicates find() {
    std::size_t all = 0;
    for (const Dataset* part : parts_) all += static_cast<std::size_t>(part->size());
    require_memory(checked_product(all, sizeof(DigestedSample)), "looking for equal samples",
                   "use a machine with more memory");
    samples_.reserve(all);
    for (std::uint32_t part = 0; part < parts_.size(); ++part)
      if (parts_[part]->size() > 0) digest(part);
    std::ranges::sort(samples_, std::less(), &DigestedSample::order);
    for (auto first = samples_.begin(); first != samples_.end();) {
      const auto end = std::find_if(first, samples_.end(), [&](const DigestedSample& sample) {
        return sample.digest != first->digest;
      });
      compare({first, end});
      first = end;
    }
    return std::move(found_);
  }

 private:
  void digest(std::uint32_t part) {
    const Dataset& set = *parts_[part];
    const std::size_t bytes = row_bytes_of(set);
    constexpr std::size_t kAtOnce = std::size_t{4} << 20, kMost = 4096;
    std::vector<std::uint8_t> rows;
    for_each_batch(set.size(), std::min(kAtOnce / bytes, kMost), [&](std::span<const std::int32_t> indices) {
      rows.resize(indices.size() * bytes);
      read_samples(set, indices, rows);
      for (std::size_t i = 0; i < indices.size(); ++i)
        add(part, indices[i], sha256(std::as_bytes(std::span(rows).subspan(i * bytes, bytes))));
    });
  }

  void add(std::uint32_t part, std::int32_t index, const Sha256Digest& digest) {
    DigestedSample& sample = samples_.emplace_back();
    std::memcpy(sample.digest.data(), digest.data(), sizeof(sample.digest));
    sample.part = part;
    sample.label = static_cast<std::uint32_t>(at(parts_[part]->labels, index)) & 0x3fffffffU;
    sample.index = index;
  }

  /// @param equal  at least one
  void compare(std::span<const DigestedSample> equal) {
    const DigestedSample& first = equal.front();
    bool has_other_label = false;
    for (const DigestedSample& sample : equal.subspan(1)) {
      if (sample.part != first.part) {
        ++(sample.part == kTestPart ? found_.test : found_.validation);
        tell(found_.of_parts, sample, first, "");
      }
      if (sample.label == first.label || has_other_label) continue;
      has_other_label = true;
      ++found_.under_two_labels;
      tell(found_.of_labels, sample, first,
           fmt::format(", labelled {} and {}", label_of(sample), label_of(first)));
    }
  }

  void tell(std::vector<std::string>& examples, const DigestedSample& sample, const DigestedSample& twin,
            const std::string& more) {
    if (examples.size() < Duplicates::kMostExamples)
      examples.push_back(fmt::format("{} is {}{}", name_of(sample), name_of(twin), more));
  }

  std::string label_of(const DigestedSample& sample) const {
    const Dataset& set = *parts_[sample.part];
    if (!set.has_label_sets())
      return sample.label < data_.class_names.size() ? quoted_text(data_.class_names[sample.label])
                                                     : std::to_string(sample.label);
    std::string names;
    for (const std::uint32_t c : labels_in(set.label_set_of(sample.index)))
      names += (names.empty() ? "" : ", ") + data_.class_names[c];
    return quoted_text(names);
  }

  /// "test[3] (cat/7.jpg)"
  std::string name_of(const DigestedSample& sample) {
    const Dataset& set = *parts_[sample.part];
    const std::int64_t place = set.place_in_file(sample.index);
    const SetHalf half = data_.half_of(set);
    std::string name(set.picture_name(sample.index));
    if (name.empty()) name = listed_name(half, place);
    return fmt::format("{}[{}]{}", lockstep::name_of(half), place,
                       name.empty() ? "" : " (" + printable_line(name) + ")");
  }

  /// Reads it of a set that lists the pictures it was made of.
  std::string listed_name(SetHalf half, std::int64_t place) {
    std::optional<std::vector<std::string>>& list = names_[static_cast<std::size_t>(half)];
    if (!list) list = read_sample_names(data_, half).names;
    return list->empty() ? "" : at(*list, place);
  }

  const TrainTestData& data_;
  std::array<const Dataset*, 3> parts_;
  std::vector<DigestedSample> samples_;
  std::array<std::optional<std::vector<std::string>>, 3> names_;  ///< [half], once they are read
  Duplicates found_;
};

}  // namespace

Duplicates find_duplicates(const TrainTestData& data) {
  return DuplicateFinder(data).find();
}

}  // namespace lockstep
