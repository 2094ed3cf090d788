// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Conversion between a struct and a JSON object: a list of fields, and two archives. One writes JSON, the
/// other reads JSON that may be hostile.
///
/// A list is a function `void fields(auto&& archive, Facts& facts)`. It calls archive(KEY, MEMBER) for each field in
/// the order of the file, and archive.require(CONDITION, KEY, WHAT) for what must hold of those that were read.
#pragma once

#include "common/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

class JsonFieldsWriter {
 public:
  explicit JsonFieldsWriter(nlohmann::ordered_json& object) : object_(object) {}

  void operator()(const char* key, const auto& value) { object_[key] = value; }
  /// An object with fields of its own.
  void object(const char* key, auto& value, const auto& fields) {
    fields(JsonFieldsWriter(object_[key]), value);
  }
  /// A list of such objects.
  void list(const char* key, const std::string& /*place*/, auto& values, const auto& fields) {
    auto& list = object_[key] = nlohmann::ordered_json::array();
    for (auto& value : values) fields(JsonFieldsWriter(list.emplace_back()), value);
  }
  bool has(const char* /*key*/, bool says_something) const { return says_something; }
  void require(bool /*holds*/, const char* /*key*/, const char* /*expected*/) const {}

 private:
  nlohmann::ordered_json& object_;
};

/// Every error names file and key of the value that is not what it must be.
class JsonFieldsReader {
 public:
  /// Borrows the JSON and `file`.
  JsonFieldsReader(const nlohmann::json& value, const std::string& file, std::string place)
      : value_(value), file_(file), place_(std::move(place)) {
    if (!value_.is_object()) throw DataError(fmt::format("{}: {} is not an object", file_, place_));
  }

  template <typename T>
  void operator()(const char* key, T& value) const {
    const auto [fits, expected] = check(at(key), value);
    require(fits, key, expected);
    value = at(key).template get<T>();
  }
  void object(const char* key, auto& value, const auto& fields) const {
    fields(JsonFieldsReader(at(key), file_, fmt::format("{}.{}", place_, key)), value);
  }
  /// @param place  for messages: the text before the number of an entry
  void list(const char* key, const std::string& place, auto& values, const auto& fields) const {
    require(at(key).is_array(), key, "a list");
    for (const nlohmann::json& entry : at(key)) {
      const JsonFieldsReader archive(entry, file_, fmt::format("{}[{}]", place, values.size()));
      fields(archive, values.emplace_back());
    }
  }
  bool has(const char* key, bool /*says_something*/) const { return value_.contains(key); }
  /// @throws DataError  unless it holds
  void require(bool holds, const char* key, const char* expected) const {
    if (!holds) throw DataError(fmt::format("{}: {}.{} is not {}", file_, place_, key, expected));
  }

 private:
  using Json = nlohmann::json;
  /// Result of a type check, and the name of the expected type.
  using Check = std::pair<bool, const char*>;

  static Check check(const Json& json, const std::string&) { return {json.is_string(), "text"}; }
  static Check check(const Json& json, double) { return {json.is_number(), "a number"}; }
  static Check check(const Json& json, std::uint64_t) {
    return {json.is_number_unsigned(), "a whole number that is not negative"};
  }
  static Check check(const Json& json, std::int64_t) {
    return {json.is_number_unsigned() && fits<std::int64_t>(json), "a whole number in range"};
  }
  static Check check(const Json& json, const std::map<std::string, std::string>&) {
    if (!json.is_object()) return {false, "an object"};
    return {std::ranges::all_of(json, &Json::is_string), "an object of texts"};
  }
  static Check check(const Json& json, const std::vector<std::string>&) {
    return {json.is_array() && std::ranges::all_of(json, &Json::is_string), "a list of texts"};
  }
  template <typename Number>
  static Check check(const Json& json, const std::vector<Number>&) {
    if (!json.is_array()) return {false, "a list"};
    return {std::ranges::all_of(json, fits<Number>), std::is_signed_v<Number>
                                                         ? "a list of whole numbers in range"
                                                         : "a list of whole numbers that are not negative"};
  }
  template <typename Number>
  static bool fits(const Json& json) {
    if (json.is_number_unsigned()) return std::in_range<Number>(json.get<std::uint64_t>());
    return json.is_number_integer() && std::in_range<Number>(json.get<std::int64_t>());
  }

  const Json& at(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) throw DataError(fmt::format("{}: {}.{} is missing", file_, place_, key));
    return *found;
  }

  const Json& value_;
  const std::string& file_;
  std::string place_;
};

/// The value; of an optional its own, which it has from now on.
template <typename T>
T& held(T& value) {
  return value;
}
template <typename T>
T& held(std::optional<T>& value) {
  return value ? *value : value.emplace();
}

/// A field that is left out where it says nothing.
/// @param fields  of an object
template <typename T>
void optional_field(auto&& archive, const char* key, T& value, const auto&... fields) {
  if (!archive.has(key, value != T()))
    value = T();
  else if constexpr (sizeof...(fields) > 0)
    archive.object(key, held(value), fields...);
  else
    archive(key, held(value));
}

/// The object that a list of fields makes of a value.
template <typename T>
nlohmann::ordered_json json_of_fields(T value, const auto& fields) {
  nlohmann::ordered_json object;
  fields(JsonFieldsWriter(object), value);
  return object;
}
/// The reverse. @param what  it is, for messages   @throws DataError
template <typename T>
T read_fields(const nlohmann::json& object, const std::string& what, const auto& fields) {
  T value;
  fields(JsonFieldsReader(object, what, "object"), value);
  return value;
}

}  // namespace lockstep
