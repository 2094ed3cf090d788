// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The contents of people's folders: pictures and what is none, folders of classes, and folders of halves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr const char* kReadFormats = "png, jpg, jpeg, jpe, jfif, webp, bmp, pgm, ppm";

/// Links are followed. @throws IoError  a disk that fails must not look like one that lacks it
bool is_folder(const std::filesystem::path& path);
bool is_picture(const std::filesystem::path& path);

/// In small letters: ".jpg".
std::string extension_of(const std::filesystem::path& path);
/// True of files that hold pictures, too, which people expect to be read.
bool is_of_unread_format(std::string_view extension);
/// In a word or two: what that is, which is not read. A file ends in kFileKind: ".txt file".
std::string kind_of(const std::filesystem::path& path);
inline constexpr std::string_view kFileKind = " file";

/// The folders of a set that has some for its halves.
struct HalfFolders {
  std::filesystem::path train, test, validation;  ///< hold folders; empty: there is none
  std::vector<std::filesystem::path> others{};    ///< folders beside them
  std::vector<std::filesystem::path> files{};     ///< and what is no folder
};

/// By their names, see find_sorted_pictures(). Nothing: the folders are those of classes.
/// @throws DataError  they may be either, or one half is there twice
std::optional<HalfFolders> halves_in(const std::filesystem::path& root);

}  // namespace lockstep
