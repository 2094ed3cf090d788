// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading the maps of texts that a manifest holds ("model", "data"), with errors that name checkpoint and
/// key.
#pragma once

#include "common/error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep {

/// Borrows the map.
class RecordedValues {
 public:
  /// @param section  the manifest's name for the map
  RecordedValues(const std::map<std::string, std::string>& entries, std::string checkpoint,
                 std::string section)
      : entries_(entries), checkpoint_(std::move(checkpoint)), section_(std::move(section)) {}

  bool has(const std::string& key) const { return entries_.contains(key); }

  /// @throws DataError  it is not there
  const std::string& text(const std::string& key) const {
    const auto entry = entries_.find(key);
    if (entry == entries_.end())
      throw DataError(fmt::format("{}: the manifest does not say {}.{}", checkpoint_, section_, key));
    return entry->second;
  }

  std::string text_or(const std::string& key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
  }

  /// @throws DataError  it is not there, or not a number of that type
  template <typename Number>
  Number number(const std::string& key) const {
    const std::string& value = text(key);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size()) {
      throw DataError(
          fmt::format("{}: the manifest's {}.{} is '{}', not a number", checkpoint_, section_, key, value));
    }
    return result;
  }

  /// "0.5" or "[0.5, 0.25]". @throws DataError  it is not there, or none of the two
  std::vector<double> numbers(const std::string& key) const {
    std::string_view rest = text(key);
    const bool is_list = rest.starts_with('[') && rest.ends_with(']');
    if (is_list) rest = rest.substr(1, rest.size() - 2);
    std::vector<double> result;
    for (bool more = true; more;) {
      const auto [end, error] =
          std::from_chars(rest.data(), rest.data() + rest.size(), result.emplace_back());
      if (error != std::errc()) break;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      if (rest.empty()) return result;
      more = is_list && rest.starts_with(", ");
      if (more) rest.remove_prefix(2);
    }
    throw DataError(fmt::format("{}: the manifest's {}.{} is '{}', not a number or a list of them",
                                checkpoint_, section_, key, text(key)));
  }

  template <typename Number>
  Number number_or(const std::string& key, Number otherwise) const {
    return has(key) ? number<Number>(key) : otherwise;
  }

 private:
  const std::map<std::string, std::string>& entries_;
  std::string checkpoint_, section_;
};

}  // namespace lockstep
