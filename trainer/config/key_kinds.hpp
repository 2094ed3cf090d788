// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kinds of keys: how their values are read from YAML, written and described. And the key of a field of Job.
#pragma once

#include "common/yaml.hpp"
#include "trainer/config/job_key.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::job_keys {

/// Text of a scalar that is not in quotes. "": it is something else.
inline std::string plain_text(const YAML::Node& node) {
  return node.IsScalar() && node.Tag() != "!" ? node.Scalar() : "";
}

/// Text of a node for messages; lists of plain values only if they are short.
std::string shown(const YAML::Node& node);

/// The way to one field of Job: Field([](auto& job) -> decltype(auto) { return (job.train.epochs); }). It is the same
/// type for all fields of a type, so that what is made for one, the compiler makes for all.
template <typename T>
class Field {
 public:
  template <typename Access>
  explicit Field(Access access) : mutable_(access), constant_(access) {}
  T& operator()(Job& job) const { return mutable_(job); }
  const T& operator()(const Job& job) const { return constant_(job); }

 private:
  T& (*mutable_)(Job&);
  const T& (*constant_)(const Job&);
};
template <typename Access>
Field(Access) -> Field<std::remove_reference_t<std::invoke_result_t<Access, Job&>>>;

/// Kind of value that a key accepts: the one place that reads it from YAML, writes and describes it.
template <typename T>
struct Kind {
  std::string expected;
  std::function<std::optional<T>(const YAML::Node&)> read;  ///< nothing: that is not what is expected
  std::function<std::string(const T&)> write;
  std::vector<std::string_view> choices = {};
  ValueHint hint = {};
  ValueFault fault = {};
};

/// @tparam Integer  of the field: int, std::int64_t or std::uint64_t
template <typename Integer = std::int64_t>
Kind<Integer> whole(std::type_identity_t<Integer> low, std::type_identity_t<Integer> high) {
  const auto read = [=](const YAML::Node& node) -> std::optional<Integer> {
    std::optional<std::conditional_t<std::is_signed_v<Integer>, std::int64_t, std::uint64_t>> number;
    if constexpr (std::is_signed_v<Integer>)
      number = parse_int64(plain_text(node));
    else
      number = parse_uint64(plain_text(node));
    if (!number || *number < low || *number > high) return std::nullopt;
    return static_cast<Integer>(*number);
  };
  return {.expected = fmt::format("a whole number from {} to {}", low, high),
          .read = read,
          .write = [](Integer value) { return std::to_string(value); }};
}

/// From 0, which auto is, too.
/// @param automatic  the value of auto; 0: then 0 is auto, too
Kind<std::int64_t> whole_or_auto(std::int64_t high, std::int64_t automatic = 0);

Kind<double> real(RealRange range);

Kind<bool> yes_or_no();
/// yes_or_no() to red, green and blue.
Kind<PictureColour> colour();
Kind<std::string> one_of(const std::vector<std::string_view>& words);
/// One of the values that kSpellings has of its type.
template <typename Value>
Kind<Value> one_of() {
  const auto words = names_of(kSpellings<Value>, [](const auto& spelling) { return spelling.first; });
  const auto read = [](const YAML::Node& node) -> std::optional<Value> {
    for (const auto& [word, value] : kSpellings<Value>)
      if (node.IsScalar() && node.Scalar() == word) return value;
    return std::nullopt;
  };
  return {.expected = one_of(words).expected,
          .read = read,
          .write = [](Value value) { return format_yaml_text(spelt(value)); },
          .choices = words};
}

inline constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();
/// `least` to `most` values of a kind; never none.
template <typename T>
Kind<std::vector<T>> list_of(const Kind<T>& one, const std::string& expected, std::size_t least = 1,
                             std::size_t most = kAnyLength) {
  const auto read = [=](const YAML::Node& node) -> std::optional<std::vector<T>> {
    if (!node.IsSequence() || node.size() < least || node.size() > most) return std::nullopt;
    std::vector<T> values;
    for (const auto& entry : node) {
      auto value = one.read(entry);
      if (!value) return std::nullopt;
      values.push_back(*std::move(value));
    }
    return values;
  };
  const auto write = [=](const std::vector<T>& values) {
    std::vector<std::string> texts;
    for (const T& value : values) texts.push_back(one.write(value));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  };
  return {.expected = expected, .read = read, .write = write, .hint = one.hint};
}
/// A value of the kind, or auto.
/// @param automatic  the value of auto
template <typename T>
Kind<T> or_auto(Kind<T> kind, T automatic = {}) {
  kind.read = [automatic, read = std::move(kind.read)](const YAML::Node& node) {
    return node.IsScalar() && node.Scalar() == "auto" ? automatic : read(node);
  };
  kind.write = [automatic, write = std::move(kind.write)](const T& value) {
    return value == automatic ? "auto" : write(value);
  };
  return kind;
}

/// A number for all channels of an image, a list of one for each, or auto.
Kind<std::vector<double>> channel_numbers(RealRange range);
/// A text whose "~" is expanded.
/// @param may_be_empty  and then null is the empty text
Kind<std::string> path(std::string expected, bool may_be_empty = false);
/// Any printable text.
Kind<std::string> word(std::string expected);
Kind<std::size_t> byte_count();
/// none, balanced, or a list of numbers.
Kind<ClassWeights> class_weights();
/// "64", "64x48", or auto.
Kind<PictureSize> picture_size();
Kind<HoldOut> samples_or_share(std::int64_t most);
/// The list of data.augment.
Kind<std::vector<Augmentation>> augmentations();
Kind<std::string> device();
Kind<std::string> fault();
Kind<StagesSection> stages();
inline constexpr std::size_t kMostPatterns = 1000;
Kind<std::string> pattern();
/// Patterns of names, or one of them.
Kind<std::vector<std::string>> patterns();
Kind<std::vector<GroupSection>> groups();
/// "100..110", or off.
Kind<TracedSteps> steps();

/// The key of a field: a row of the schema.
template <typename T>
JobKey key(const char* path, const Field<T>& field, const Kind<T>& kind, const std::string& meaning,
           Determines determines = {}) {
  const auto read = [field, read = kind.read](const YAML::Node& node, Job& job) {
    auto value = read(node);
    if (!value) return false;
    field(job) = *std::move(value);
    return true;
  };
  return {.path = path,
          .meaning = meaning,
          .expected = kind.expected,
          .determines = determines,
          .choices = kind.choices,
          .hint = kind.hint,
          .fault = kind.fault,
          .read = read,
          .write = [field, write = kind.write](const Job& job) { return write(field(job)); }};
}

}  // namespace lockstep::job_keys
