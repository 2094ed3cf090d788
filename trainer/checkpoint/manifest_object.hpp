// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A JSON object of manifest.json that may be hostile: getters for each kind of value.
#pragma once

#include "common/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One object of the manifest; every getter names file and key when the value is not what it must be.
class ManifestObject {
 public:
  ManifestObject(const nlohmann::json& value, const std::string& file, std::string place)
      : value_(value), file_(file), place_(std::move(place)) {
    if (!value_.is_object()) throw DataError(fmt::format("{}: {} is not an object", file_, place_));
  }

  bool has(const char* key) const { return value_.contains(key); }

  std::string text(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_string()) wrong(key, "text");
    return value.get<std::string>();
  }

  std::uint64_t unsigned_integer(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number_unsigned()) wrong(key, "a whole number that is not negative");
    return value.get<std::uint64_t>();
  }

  std::int64_t integer(const char* key) const {
    const nlohmann::json& value = at(key);
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= INT64_MAX;
    if (!fits) wrong(key, "a whole number in range");
    return value.get<std::int64_t>();
  }

  double number(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number()) wrong(key, "a number");
    return value.get<double>();
  }

  double fraction(const char* key) const {
    const nlohmann::json& value = at(key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0 && number <= 1)) wrong(key, "a number from 0 to 1");
    return number;
  }

  std::map<std::string, std::string> texts(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_object()) wrong(key, "an object");
    std::map<std::string, std::string> result;
    for (const auto& [name, entry] : value.items()) {
      if (!entry.is_string()) wrong(key, "an object of texts");
      result.emplace(name, entry.get<std::string>());
    }
    return result;
  }

  std::vector<std::size_t> sizes(const char* key) const {
    std::vector<std::size_t> result;
    for (const nlohmann::json& entry : list(key)) {
      if (!entry.is_number_unsigned()) wrong(key, "a list of whole numbers that are not negative");
      result.push_back(entry.get<std::size_t>());
    }
    return result;
  }

  /// Whole numbers from `least` to `most`.
  std::vector<std::int64_t> integers(const char* key, std::int64_t least, std::int64_t most) const {
    std::vector<std::int64_t> result;
    for (const nlohmann::json& entry : list(key)) {
      const bool is_small = !entry.is_number_unsigned() || entry.get<std::uint64_t>() <= INT64_MAX;
      const bool fits = entry.is_number_integer() && is_small && entry.get<std::int64_t>() >= least &&
                        entry.get<std::int64_t>() <= most;
      if (!fits) wrong(key, "a list of whole numbers in range");
      result.push_back(entry.get<std::int64_t>());
    }
    return result;
  }

  ManifestObject object(const char* key) const { return {at(key), file_, fmt::format("{}.{}", place_, key)}; }

  const nlohmann::json& list(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_array()) wrong(key, "a list");
    return value;
  }

  [[noreturn]] void wrong(const char* key, const char* expected) const {
    throw DataError(fmt::format("{}: {}.{} is not {}", file_, place_, key, expected));
  }

 private:
  const nlohmann::json& at(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) throw DataError(fmt::format("{}: {}.{} is missing", file_, place_, key));
    return *found;
  }

  const nlohmann::json& value_;
  const std::string& file_;
  std::string place_;
};

}  // namespace lockstep
