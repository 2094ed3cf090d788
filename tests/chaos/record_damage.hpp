// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Damage to a run's records between two starts: lost, cut or changed, and others put files beside them.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

class Attempt;  // tests/chaos/attempt.hpp

inline constexpr const char* kMetricsLost = "metrics.jsonl up to the checkpoint lost, cut or changed: told";
inline constexpr const char* kTrailLost = "trail.bin up to the checkpoint lost, cut or changed: told";
inline constexpr const char* kNothingLost = "records changed behind the checkpoint only: nothing to tell";
inline constexpr const char* kForeign = "files of others, all untouched after each start";

/// Damage of one life.
class RecordDamage {
 public:
  explicit RecordDamage(std::string run_dir);

  /// Strikes one record, and puts one to four files of others into the run's directory. No start is under way.
  void strike(Dice& dice, Tally& tally, std::string& story);
  /// True if the next start must report a loss, which a killed launcher would not pass on.
  bool is_owed_a_word() const { return !owed_.empty(); }
  /// After each start. @throws Violation  a file of others is not as it was, or a loss was passed over
  void check(const Attempt& attempt, Tally& tally);

  /// True if the file was never damaged.
  bool is_whole(const std::string& file) const { return !damaged_.contains(file); }

 private:
  void damage(const std::string& file, Dice& dice, Tally& tally, std::string& story);
  std::size_t bytes_up_to_checkpoint(const std::string& file, const std::string& text) const;
  void put(const std::string& path);
  void put_foreign_files(Dice& dice, Tally& tally, std::string& story);
  void check_foreign_files() const;

  std::string run_dir_;
  std::map<std::string, std::string> foreign_;  ///< contents by path
  std::set<std::string> damaged_, owed_;        ///< "metrics.jsonl", "trail.bin"
  std::map<std::string, std::int64_t> told_;    ///< the checkpoint at which a file's loss was last told
  int kept_aside_ = 0;                          ///< changed files that no start will keep
};

}  // namespace lockstep::chaos
