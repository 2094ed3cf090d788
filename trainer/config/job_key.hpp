// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One key of a job file: its name, its place in Job, what it accepts and what it means.
#pragma once

#include "trainer/config/job.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

/// A scalar as it stands in the file; or a list of plain scalars as the text "[1, 2]".
struct ScalarText {
  enum class Style { kPlain, kQuoted, kNull };
  std::string text;
  Style style = Style::kPlain;
};

/// Whether two jobs that differ in this key may end in different weights.
enum class Determines { kNothing, kWeights, kWeightsInWorldMode };

struct JobKey {
  std::string path = {};      ///< "train.optimizer.lr"
  std::string meaning = {};   ///< one line for people, without a full stop
  std::string expected = {};  ///< "a whole number from 1 to 4096"
  Determines determines = Determines::kNothing;
  std::vector<std::string_view> choices = {};      ///< of an enumeration
  std::vector<std::string_view> other_names = {};  ///< what other programs call it; only for "did you mean"

  bool is_list = false;  ///< a list in the file, which `read` gets as text

  /// Stores the value in the job, or returns false and leaves it alone if it is not what is expected.
  std::function<bool(const ScalarText&, Job&)> read = {};
  /// The value as a YAML scalar that `read` takes back.
  std::function<std::string(const Job&)> write = {};
  /// As `read`, from a list of values; null: the key takes none.
  std::function<bool(const std::vector<ScalarText>&, Job&)> read_list = {};
  /// As `read`, from a list of lists of values; null: the key takes none.
  std::function<bool(const std::vector<std::vector<ScalarText>>&, Job&)> read_lists = {};

  /// "lr" of "train.optimizer.lr"
  std::string_view leaf() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  /// "train.optimizer" of "train.optimizer.lr"; "" at the top
  std::string_view section() const;

  /// What a value that `read` refuses may have meant, or why it is refused: behind the message; may be null.
  std::function<std::string(const std::string& value)> hint = {};

  JobKey&& as_list() &&;
  JobKey&& with_hint(std::function<std::string(const std::string&)> text) &&;
  JobKey&& also_called(std::vector<std::string_view> names) &&;
};

/// Converters between text and the value of a field.
struct IntRange {
  std::int64_t low, high;
};
struct RealRange {
  double low, high;
  bool open_low = false, open_high = false;  ///< whether the bound itself is excluded
};

bool read_integer(const ScalarText& scalar, const IntRange& range, std::int64_t& value);
/// Numbers are used as fp32: one that lies in the range, but would there be 0 or an excluded bound, is refused.
bool read_real(const ScalarText& scalar, const RealRange& range, double& value);
/// "auto" is no number.
bool read_reals(const std::vector<ScalarText>& list, const RealRange& range, std::vector<double>& values);
/// "auto", "0.5", "[0.5, 0.25]"
std::string write_reals(const std::vector<double>& values);
bool read_bool(const ScalarText& scalar, bool& value);
bool read_seed(const ScalarText& scalar, std::uint64_t& value);
bool read_choice(const ScalarText& scalar, const std::vector<std::string_view>& choices, std::string& value);
bool read_text(const ScalarText& scalar, bool may_be_empty, std::string& value);
/// At least one.
bool read_integers(const ScalarText& list, const IntRange& range, std::vector<std::int64_t>& values);
bool read_reals(const ScalarText& list, const RealRange& range, std::vector<double>& values);
/// "auto" is 0.
bool read_byte_count(const ScalarText& scalar, std::size_t& value);
std::string write_byte_count(std::size_t value);

std::string describe(const IntRange& range);
std::string describe(const RealRange& range);
std::string describe(const std::vector<std::string_view>& choices);

}  // namespace lockstep

namespace lockstep::job_keys {

// The kinds of keys that a job file has: for each a function that makes the JobKey of a field of Job.

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

/// @tparam Integer  int or std::int64_t
template <typename Integer>
JobKey integer(const char* path, const Field<Integer>& field, IntRange range, std::string meaning,
               Determines determines = {});
JobKey real(const char* path, const Field<double>& field, RealRange range, std::string meaning,
            Determines determines = {});
/// @param count  how many numbers; 0: any number from one on
JobKey reals(const char* path, const Field<std::vector<double>>& field, RealRange range, std::size_t count,
             std::string expected, std::string meaning, Determines determines);
JobKey integers(const char* path, const Field<std::vector<std::int64_t>>& field, IntRange range,
                std::string expected, std::string meaning, Determines determines);
/// A number for all channels of an image, a list of one for each, or auto, which is none.
JobKey channel_numbers(const char* path, const Field<std::vector<double>>& field, RealRange range,
                       std::string meaning, Determines determines = {});
JobKey boolean(const char* path, const Field<bool>& field, std::string meaning, Determines determines = {});
JobKey choice(const char* path, const Field<std::string>& field, const std::vector<std::string_view>& choices,
              std::string meaning, Determines determines = {});
/// One of the values that kSpellings has of its type.
template <typename Value>
JobKey choice(const char* path, const Field<Value>& field, std::string meaning, Determines determines = {});
/// @param may_be_empty  and then null is the empty text
JobKey text(const char* path, const Field<std::string>& field, bool may_be_empty, std::string expected,
            std::string meaning, Determines determines = {});
/// A text whose "~" is expanded.
JobKey path(const char* name, const Field<std::string>& field, bool may_be_empty, std::string expected,
            std::string meaning, Determines determines = {});
JobKey seed(const char* path, const Field<std::uint64_t>& field, std::string meaning, Determines determines);
JobKey byte_count(const char* path, const Field<std::size_t>& field, std::string meaning);
JobKey device(const char* path, const Field<std::string>& field, std::string meaning);
JobKey stages(const char* path, const Field<StagesSection>& field, std::string meaning);
JobKey placement(const char* path, const Field<std::vector<std::int64_t>>& field, std::string meaning);
JobKey fault(const char* path, const Field<std::string>& field, std::string meaning);

}  // namespace lockstep::job_keys
