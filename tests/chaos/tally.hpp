// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a chaos test counts, printed at its end.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// May be used by several threads.
class Tally {
 public:
  /// `title` heads the counts of `labels`, which are printed in this order, zeros included.
  void section(const std::string& title, const std::vector<std::string>& labels);
  /// Counts one more. A label of no section opens a last one, so that nothing counted is hidden.
  void add(const std::string& label);
  /// Steps between the last one logged and the checkpoint that was left, of one kill.
  void lost(std::int64_t steps);

  std::int64_t count(const std::string& label) const;
  std::string text() const;

 private:
  struct Section {
    std::string title;
    std::vector<std::string> labels;
  };

  mutable std::mutex mutex_;
  std::vector<Section> sections_;
  std::map<std::string, std::int64_t> counts_;
  std::vector<std::int64_t> lost_;
};

/// The blows that remain to be dealt, shared by all runs.
class Rounds {
 public:
  explicit Rounds(std::int64_t total) : total_(total) {}
  bool take();       ///< false: there is none left
  void give_back();  ///< the blow did not fall
  bool finished() const;
  std::int64_t taken() const;
  std::int64_t total() const { return total_; }

 private:
  mutable std::mutex mutex_;
  std::int64_t total_, taken_ = 0;
};

}  // namespace lockstep::chaos
