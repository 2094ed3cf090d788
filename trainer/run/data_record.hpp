// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The data that a run is trained on, as its checkpoints remember it: where it was and what it held. So
/// a resume or an evaluation does not take another set of the same name for it.
#pragma once

#include "common/env.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_loading.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/config/job.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// The manifest's "data".
struct DataRecord {
  /// As the run loaded it: set, directory, normalisation, and of sets made in memory seed and numbers of
  /// samples. load_dataset takes it as it is, while the directory is still there.
  DatasetOptions options;
  SetFingerprints fingerprints;
  std::int64_t train_samples = 0, test_samples = 0;  ///< in the files
  std::int64_t validation_samples = 0;               ///< in files of their own; 0: there were none
  bool light_background = false;                     ///< training images are dark on light by nature
  /// In label order. May be empty.
  std::vector<std::string> class_names;
  std::string columns;  ///< as of TrainTestData
  std::string leave_out,
      leave_out_contents;  ///< the file of data.leave_out, and the job's value for what it said
};

/// True if most of the first training images are dark on light by nature. They are read; photographs are not looked at.
bool has_light_background(const Job& job, const Dataset& train);

/// The manifest's "data" for a run of `job` on `data`.
/// @param light_background  has_light_background()
std::map<std::string, std::string> describe_data(const Job& job, const TrainTestData& data,
                                                 const SetFingerprints& fingerprints, bool light_background);

/// Parses the recorded keys of the run's job about its model, data and evaluation. All others have their
/// defaults.
/// @param checkpoint  for messages
/// @throws DataError  a value that cannot be right
Job recorded_job(const CheckpointFacts& facts, const std::string& checkpoint);

/// @param checkpoint  for messages
/// @throws DataError  a value that cannot be right
DataRecord read_data_record(const CheckpointFacts& facts, const std::string& checkpoint);

/// The list of data.leave_out; null: the run had none.
/// @throws DataError  it says something else by now; MissingDataError, IoError
std::shared_ptr<const LeaveOutList> recorded_leave_out(const DataRecord& record,
                                                       const std::string& checkpoint);

/// Lists differences between the recorded data and today's, with both values. "mnist train samples (sha256
/// 0123456789abcdef then, fedcba9876543210 now)". Empty: they are the same.
std::vector<std::string> data_differences(const DataRecord& record, const TrainTestData& now,
                                          const SetFingerprints& fingerprints);

/// The sentence of a run that began without names of classes and goes on with the set's. Empty: it has its names.
std::string names_taken(const CheckpointFacts& facts, const TrainTestData& now);

/// For a run that goes on. It may be tested on another number of samples (data.test_samples) than before.
/// @throws DataError  naming what differs, both places, and what to do
void require_same_data(const CheckpointFacts& facts, const Job& job, const TrainTestData& now,
                       const SetFingerprints& fingerprints);

/// Directory of the data in the newest checkpoint of the run that `job` goes on with. It is the first place
/// for data.root=auto. Empty if there is none, or it does not say. Never throws: this is only a hint, the
/// data themselves are compared later.
std::string recorded_directory(const Job& job) noexcept;

// Reading the maps of texts that a manifest holds ("model", "data"), with errors that name checkpoint and
// key.

/// Borrows the map.
class RecordedValues {
 public:
  /// @param section  the manifest's name for the map
  RecordedValues(const std::map<std::string, std::string>& entries, std::string checkpoint,
                 std::string section)
      : entries_(entries), checkpoint_(std::move(checkpoint)), section_(std::move(section)) {}

  bool has(const std::string& key) const { return entries_.contains(key); }

  /// @throws DataError  it is not there, and nothing is given for that
  std::string text(const std::string& key, const std::optional<std::string>& otherwise = {}) const {
    const auto entry = entries_.find(key);
    if (entry != entries_.end()) return entry->second;
    if (otherwise) return *otherwise;
    throw DataError(fmt::format("{}: the manifest does not say {}.{}", checkpoint_, section_, key));
  }

  /// @throws DataError  as text(), or it is not a number of that type
  template <typename Number>
  Number number(const std::string& key, std::optional<Number> otherwise = {}) const {
    if (otherwise && !has(key)) return *otherwise;
    const std::string value = text(key);
    if (const auto number = parse_whole<Number>(value)) return *number;
    throw DataError(
        fmt::format("{}: the manifest's {}.{} is '{}', not a number", checkpoint_, section_, key, value));
  }

  /// "0.5" or "[0.5, 0.25]". @throws DataError  it is not there, or none of the two
  std::vector<double> numbers(const std::string& key) const {
    const nlohmann::json value = parse_json_or_discard(text(key));
    if (value.is_number()) return {value.get<double>()};
    const bool is_list = value.is_array() && !value.empty();
    if (is_list && std::ranges::all_of(value, &nlohmann::json::is_number)) return value;
    throw DataError(fmt::format("{}: the manifest's {}.{} is '{}', not a number or a list of them",
                                checkpoint_, section_, key, text(key)));
  }

 private:
  const std::map<std::string, std::string>& entries_;
  std::string checkpoint_, section_;
};

}  // namespace lockstep
