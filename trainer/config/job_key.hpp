// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One key of a job file: its name, what it accepts and what it means.
#pragma once

#include "trainer/config/job.hpp"

#include <yaml-cpp/mark.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
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
