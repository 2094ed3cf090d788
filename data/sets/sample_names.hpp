// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From which pictures the samples of a set were made, and how: a list and a note beside its images, which `lockstep
/// convert` writes.
///
/// train-names.jsonl, t10k-names.jsonl (in shards test-names.jsonl) and validation-names.jsonl have a line for each sample, in their order: the path of the picture within
/// the folder that was converted, as a JSON string in ASCII. So any name is one line; what is no UTF-8 in it became
/// U+FFFD.
#pragma once

#include "common/env.hpp"
#include "data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// @param half  "train", "t10k", "test" or "validation"
std::string sample_names_file(std::string_view half);

/// The list of a half, of a set in IDX files or in shards.
std::filesystem::path sample_names_in(const std::filesystem::path& directory, SetHalf half);

/// The list beside a file of images: DIR/t10k-names.jsonl for DIR/t10k-images-idx3-ubyte.gz. Empty where the file is
/// not called like that.
std::filesystem::path sample_names_beside(const std::filesystem::path& images);

/// A line of a list, with its end.
std::string sample_name_line(const std::filesystem::path& picture);

struct SampleNames {
  std::vector<std::string> names;  ///< one for each sample; empty: there is no list, or it cannot be used
  std::string warning;             ///< why it cannot, and what to do; empty: there is none, or it can
};

/// A list may be anything: its size and its lines are bounded, and it is used whole or not at all.
/// @param samples  so many must it name
SampleNames read_sample_names(Env& env, const std::filesystem::path& list, std::int64_t samples);

// How the pictures of a set were made, for those that the network is asked about later.

/// {"lockstep_conversion": 1, "fit": "crop"}. Without this file pictures were squeezed, or were of one size.
inline constexpr const char* kConversionFile = "conversion.json";

std::string conversion_text(PictureFit fit);
/// @throws DataError  it is damaged, or of a newer version; IoError
PictureFit read_fit(Env& env, const std::filesystem::path& directory);

}  // namespace lockstep
