// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One key of a job file: its name, its place in Job, what it accepts and what it means.
#pragma once

#include "trainer/config/job.hpp"

#include <yaml-cpp/mark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace YAML {
class Node;
}

namespace lockstep {

/// Influence of a key on the weights: whether two jobs that differ in it may end in different ones.
/// kWeightsUnlessDefault is for a key that came later: jobs without it keep the digest of what they compute.
enum class Determines { kNothing, kWeights, kWeightsInWorldMode, kWeightsUnlessDefault };

/// Hint for a refused value, such as its correction or the reason. " (did you mean 'cpu'?)"; "" if there is none.
using ValueHint = std::function<std::string(const std::string& value)>;
/// Fault in a refused value of several parts, in words, and its place; "": `expected` says it all.
struct FoundFault {
  std::string text;
  YAML::Mark place = YAML::Mark::null_mark();  ///< null: where the value begins
};
using ValueFault = std::function<FoundFault(const YAML::Node&)>;

struct JobKey {
  std::string path = {};      ///< "train.optimizer.lr"
  std::string meaning = {};   ///< one line for people, without a full stop
  std::string expected = {};  ///< "a whole number from 1 to 4096"
  Determines determines = Determines::kNothing;
  std::vector<std::string_view> choices = {};      ///< values of an enumeration
  std::vector<std::string_view> other_names = {};  ///< names in other programs; only for "did you mean"
  ValueHint hint = {};                             ///< null: the choice that is spelt nearly so
  ValueFault fault = {};                           ///< null: `expected` says it all
  std::string_view example = {};                   ///< a value other than the default; "": see example_of()

  /// Stores the value in the job, or returns false and leaves it alone if it is not what is expected.
  std::function<bool(const YAML::Node&, Job&)> read = {};
  /// The value as YAML that `read` takes back.
  std::function<std::string(const Job&)> write = {};

  /// "lr" of "train.optimizer.lr"
  std::string_view leaf() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  /// "train.optimizer" of "train.optimizer.lr"; "" at the top
  std::string_view section() const {
    const std::size_t dot = path.rfind('.');
    return std::string_view(path).substr(0, dot == path.npos ? 0 : dot);
  }
  /// Here, or in other programs.
  bool is_called(std::string_view name) const {
    return leaf() == name || std::ranges::find(other_names, name) != other_names.end();
  }

  JobKey&& also_called(std::vector<std::string_view> names) && {
    other_names = std::move(names);
    return std::move(*this);
  }
  JobKey&& such_as(std::string_view value) && {
    example = value;
    return std::move(*this);
  }
};

}  // namespace lockstep

namespace lockstep::job_keys {

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
Kind<Integer> whole(std::type_identity_t<Integer> low, std::type_identity_t<Integer> high);

/// From 0, which auto is, too.
/// @param automatic  the value of auto; 0: then 0 is auto, too
Kind<std::int64_t> whole_or_auto(std::int64_t high, std::int64_t automatic = 0);

struct RealRange {
  double low, high;
  bool open_low = false, open_high = false;  ///< excludes the bound itself
};
/// Refuses a number within the range that as fp32 would be 0 or an excluded bound.
Kind<double> real(RealRange range);

Kind<bool> yes_or_no();
/// yes_or_no() to red, green and blue.
Kind<PictureColour> colour();
Kind<std::string> one_of(const std::vector<std::string_view>& words);
/// One of the values that kSpellings has of its type.
template <typename Value>
Kind<Value> one_of();

inline constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();
/// `least` to `most` values of a kind; never none.
template <typename T>
Kind<std::vector<T>> list_of(const Kind<T>& one, const std::string& expected, std::size_t least = 1,
                             std::size_t most = kAnyLength);
/// Value of the kind, or auto, which is the empty list.
template <typename T>
Kind<std::vector<T>> or_auto(const Kind<std::vector<T>>& list);

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
