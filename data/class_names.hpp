// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What people call the classes of their data. Names reach terminals, so they are printable.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Labels are bytes.
inline constexpr std::size_t kMostClasses = 256;
inline constexpr std::size_t kLongestClassName = 200;  ///< bytes

/// What makes this no name of a class, for a message; null: it is fine.
const char* trouble_with_class_name(std::string_view name);

/// A name a line, in label order. Spaces around a name, a byte order mark, CR LF and empty lines at the end
/// do not count.
/// @param file  for messages
/// @throws DataError  naming file and line: an empty name, one twice, one that is no printable UTF-8 or too
/// long; none at all, or more than kMostClasses
std::vector<std::string> parse_class_names(std::string_view text, const std::string& file,
                                           std::size_t most = kMostClasses);

/// The same from a file. @throws DataError also if it is larger than all names could be; IoError
std::vector<std::string> read_class_names(const std::filesystem::path& file, std::size_t most = kMostClasses);

/// "0", "1", ...
std::vector<std::string> numbered_classes(int classes);

}  // namespace lockstep
