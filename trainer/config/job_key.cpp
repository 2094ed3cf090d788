// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What each kind of key accepts.
#include "trainer/config/job_key.hpp"

#include "common/printable.hpp"
#include "common/yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxListLength = 4096;
constexpr std::uint64_t kMinBucketBytes = 4;
constexpr std::uint64_t kMaxBucketBytes = std::uint64_t{1} << 30;

bool is_plain(const ScalarText& scalar) {
  return scalar.style == ScalarText::Style::kPlain;
}

/// Reads each element of "[1, 2]" by read_one, or nothing.
template <class Value, class ReadOne>
bool read_list(const ScalarText& list, std::vector<Value>& values, const ReadOne& read_one) {
  std::string_view text = list.text;
  if (!is_plain(list) || !text.starts_with('[') || !text.ends_with(']')) return false;
  text = text.substr(1, text.size() - 2);
  std::vector<Value> read;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(", ");
    Value value{};
    if (!read_one(ScalarText{std::string(text.substr(0, comma))}, value)) return false;
    read.push_back(value);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 2);
  }
  values = std::move(read);
  return true;
}

}  // namespace

std::string_view JobKey::section() const {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : std::string_view(path).substr(0, dot);
}

JobKey&& JobKey::also_called(std::vector<std::string_view> names) && {
  other_names = std::move(names);
  return std::move(*this);
}

JobKey&& JobKey::as_list() && {
  is_list = true;
  return std::move(*this);
}

JobKey&& JobKey::with_hint(std::function<std::string(const std::string&)> text) && {
  hint = std::move(text);
  return std::move(*this);
}

bool read_integer(const ScalarText& scalar, const IntRange& range, std::int64_t& value) {
  const auto number = is_plain(scalar) ? parse_int64(scalar.text) : std::nullopt;
  if (!number || *number < range.low || *number > range.high) return false;
  value = *number;
  return true;
}

bool read_real(const ScalarText& scalar, const RealRange& range, double& value) {
  const auto number = is_plain(scalar) ? parse_double(scalar.text) : std::nullopt;
  if (!number || *number < range.low || *number > range.high) return false;
  if ((range.open_low && *number == range.low) || (range.open_high && *number == range.high)) return false;
  const auto used = static_cast<float>(*number);
  if (used == 0 && *number != 0) return false;
  if (range.open_high && static_cast<double>(used) >= range.high) return false;
  value = *number;
  return true;
}

bool read_reals(const std::vector<ScalarText>& list, const RealRange& range, std::vector<double>& values) {
  if (list.empty() || list.size() > kMaxListLength) return false;
  std::vector<double> numbers(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!read_real(list[i], range, numbers[i])) return false;
  values = std::move(numbers);
  return true;
}

std::string write_reals(const std::vector<double>& values) {
  if (values.empty()) return "auto";
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(format_double(value));
  return texts.size() == 1 ? texts.front() : fmt::format("[{}]", fmt::join(texts, ", "));
}

bool read_bool(const ScalarText& scalar, bool& value) {
  const auto truth = is_plain(scalar) ? parse_bool(scalar.text) : std::nullopt;
  if (truth) value = *truth;
  return truth.has_value();
}

bool read_seed(const ScalarText& scalar, std::uint64_t& value) {
  const auto number = is_plain(scalar) ? parse_uint64(scalar.text) : std::nullopt;
  if (number) value = *number;
  return number.has_value();
}

bool read_choice(const ScalarText& scalar, const std::vector<std::string_view>& choices, std::string& value) {
  if (std::find(choices.begin(), choices.end(), scalar.text) == choices.end()) return false;
  value = scalar.text;
  return true;
}

bool read_text(const ScalarText& scalar, bool may_be_empty, std::string& value) {
  const std::string& text = scalar.text;
  if (text.empty() && !may_be_empty) return false;
  if (text.size() > kMaxTextBytes || find_unprintable(text) || text.find_first_of("\r\n\t") != text.npos)
    return false;
  value = text;
  return true;
}

bool read_integers(const ScalarText& list, const IntRange& range, std::vector<std::int64_t>& values) {
  return read_list(list, values, [&](const ScalarText& scalar, std::int64_t& value) {
    return read_integer(scalar, range, value);
  });
}

bool read_reals(const ScalarText& list, const RealRange& range, std::vector<double>& values) {
  return read_list(list, values,
                   [&](const ScalarText& scalar, double& value) { return read_real(scalar, range, value); });
}

bool read_byte_count(const ScalarText& scalar, std::size_t& value) {
  if (scalar.text == "auto") {
    value = 0;
    return true;
  }
  const auto bytes = is_plain(scalar) ? parse_byte_count(scalar.text) : std::nullopt;
  if (!bytes || *bytes < kMinBucketBytes || *bytes > kMaxBucketBytes) return false;
  value = static_cast<std::size_t>(*bytes);
  return true;
}

std::string write_byte_count(std::size_t value) {
  if (value == 0) return "auto";
  if (value % (std::size_t{1} << 20) == 0) return fmt::format("{}MiB", value >> 20);
  if (value % (std::size_t{1} << 10) == 0) return fmt::format("{}KiB", value >> 10);
  return fmt::format("{}", value);
}

std::string describe(const IntRange& range) {
  return fmt::format("a whole number from {} to {}", range.low, range.high);
}

std::string describe(const RealRange& range) {
  return fmt::format("a number {} {}, {} {}", range.open_low ? "above" : "from", format_double(range.low),
                     range.open_high ? "below" : "at most", format_double(range.high));
}

std::string describe(const std::vector<std::string_view>& choices) {
  return fmt::format("one of {}", fmt::join(choices, ", "));
}

}  // namespace lockstep
