// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The combinations of labels that there are, each once.
#include "data/sets/label_sets.hpp"

#include "common/machine.hpp"

#include <algorithm>

namespace lockstep {

std::int32_t LabelSets::row_of(const std::string& set) {
  const auto [row, is_new] = row_of_.try_emplace(set, static_cast<std::int32_t>(row_of_.size()));
  if (!is_new) return row->second;
  if (table_.size() + classes_ > looked_at_) {
    looked_at_ = std::max(2 * looked_at_, std::size_t{1} << 24);
    require_memory(2 * looked_at_, "the combinations of labels in " + what_, "use fewer classes or samples");
  }
  table_.insert(table_.end(), set.begin(), set.end());
  return row->second;
}

std::int32_t LabelSets::row_of(std::span<const std::uint32_t> labels) {
  std::string set(classes_, '\0');
  for (const std::uint32_t label : labels) set[label] = 1;
  return row_of(set);
}

std::vector<std::int32_t> LabelSets::rows_of(std::span<const std::uint8_t> bytes) {
  std::vector<std::int32_t> rows;
  rows.reserve(bytes.size() / classes_);
  for (std::size_t at = 0; at < bytes.size(); at += classes_) {
    const auto set = bytes.subspan(at, classes_);
    rows.push_back(row_of(std::string(set.begin(), set.end())));
  }
  return rows;
}

void LabelSets::give_to(TrainTestData& data) const {
  data.train.label_sets = data.test.label_sets = table_;
  if (data.validation.size() > 0) data.validation.label_sets = table_;
}

std::vector<std::uint32_t> labels_in(std::span<const std::uint8_t> row) {
  std::vector<std::uint32_t> labels;
  for (std::uint32_t c = 0; c < row.size(); ++c)
    if (row[c] != 0) labels.push_back(c);
  return labels;
}

}  // namespace lockstep
