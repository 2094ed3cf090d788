// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names that people give the classes of their data, and names of the pictures that its samples were. Names reach
/// terminals, so those of classes are printable.
#pragma once

#include "common/env.hpp"
#include "data/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Labels are bytes.
inline constexpr std::size_t kMostClasses = 256;
inline constexpr std::size_t kLongestClassName = 200;  ///< bytes

/// The reason why this is not a name of a class, for a message; null: it is fine.
const char* trouble_with_class_name(std::string_view name);

/// A name a line, in label order. Spaces around a name, a byte order mark, CR LF and empty lines at the end
/// do not count.
/// @param file  for messages
/// @throws DataError  naming file and line: an empty name, one twice, one that is no printable UTF-8 or too
/// long; none at all, or more than kMostClasses
std::vector<std::string> parse_class_names(std::string_view text, const std::string& file,
                                           std::size_t most = kMostClasses);

/// Reads the names from a file. @throws DataError also if it is larger than all names could be; IoError
std::vector<std::string> read_class_names(const std::filesystem::path& file, std::size_t most = kMostClasses);

/// The half that people call so, in letters of any case. Names are train or training, test or testing, val, valid or
/// validation.
std::optional<SetHalf> half_called(const std::string& name);

/// "0", "1", ...
std::vector<std::string> numbered_classes(int classes);

/// True if files of this ending, "jpg", are read as pictures. GIFs, too: reading one says what to do.
/// @param ending  in small letters
bool is_ending_of_picture(std::string_view ending);

// Pictures from which a set's samples were made, and how. That is a list and a note beside its images, which
// `lockstep convert` writes.
//
// Files train-names.jsonl, test-names.jsonl and validation-names.jsonl: a line for each sample, in order. It is the
// path of the picture within the converted folder, as a JSON string in ASCII. So any name is one line; what is no
// UTF-8 in it became U+FFFD.

/// @param half  "train", "test" or "validation"
std::string sample_names_file(std::string_view half);

/// A line of a list, with its end.
std::string sample_name_line(const std::filesystem::path& picture);

struct SampleNames {
  std::vector<std::string> names;  ///< one for each sample; empty: there is no list, or it cannot be used
  std::string warning;             ///< why it cannot, and what to do; empty: there is none, or it can
};

/// A list may be anything. Its size and its lines are bounded, and it is used whole or not at all.
/// @param samples  so many must it name
SampleNames read_sample_names(Env& env, const std::filesystem::path& list, std::int64_t samples);
/// The list of a half of a set, as its files have it.
SampleNames read_sample_names(const TrainTestData& data, SetHalf half);

// How the pictures of a set were made, for those that the network is asked about later.

/// {"lockstep_conversion": 1, "fit": "crop"}. Without this file pictures were squeezed, or were of one size.
inline constexpr const char* kConversionFile = "conversion.json";

std::string conversion_text(PictureFit fit);
/// @throws DataError  it is damaged, or of a newer version; IoError
PictureFit read_fit(Env& env, const std::filesystem::path& directory);

}  // namespace lockstep
