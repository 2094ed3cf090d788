// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the samples of WebDataset's archives are labelled with, and the classes that follow.
///
/// A label is a word: JSON in ASCII without spaces, so that it can stand in a line of an index. It is a whole number from 0
/// on, a name, or a list of either, of a sample with any number of labels.
#pragma once

#include "data/sets/label_sets.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// DatasetOptions::label for the file .cls; all others are keys of .json.
inline constexpr const char* kLabelInCls = "cls";

inline constexpr std::uint64_t kMostBytesOfCls = std::uint64_t{64} << 10,
                               kMostBytesOfJson = std::uint64_t{1} << 20;

/// Of a .cls: whole numbers with spaces or commas between. One is the label, several are a list. Nothing: it
/// holds none or something else, or a number above kMostShardClasses - 1.
std::optional<std::string> label_of_cls(std::string_view text);
/// Of a .json: what its object has under a key. Nothing: it is no such object, or has no label there.
std::optional<std::string> label_of_json(std::string_view text, const std::string& key);
bool is_tar_label(std::string_view word);

/// Of one half.
struct TarHalfLabels {
  std::vector<std::int32_t> labels;  ///< [sample] of a class, or a row of the set's label_sets
  std::string sha256;                ///< of samples with several: of how many, and each, as 32 bits
};

struct TarLabels {
  std::vector<std::string> class_names;
  std::vector<TarHalfLabels> halves;
  std::optional<LabelSets> sets;  ///< there are lists: each sample has any number of labels
};

/// Numbers are classes; names are classes in the order of `names`, or where it is empty of their bytes.
/// @param halves  [half][sample] words
/// @param names   what the classes are called; empty: not known
/// @param what    of which set they are, for messages
/// @throws DataError  names and numbers, names that `names` does not have, more classes than it has or than there may be
TarLabels classes_of_words(std::span<const std::vector<std::string>> halves, std::vector<std::string> names,
                           const std::string& what);

}  // namespace lockstep
