// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The data that a run is trained on, as its checkpoints remember it: where it was and what it held. So
/// a resume or an evaluation does not take another set of the same name for it.
#pragma once

#include "data/dataset.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/config/job.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// What the manifest's "data" says; of checkpoints without one, what follows from the rest of the manifest.
struct DataRecord {
  /// As the run loaded it: set, directory, normalisation, and of sets made in memory seed and numbers of
  /// samples. load_dataset takes it as it is, while the directory is still there.
  DatasetOptions options;
  /// Empty where the checkpoint does not say: those of version 0.1.0 before it recorded its data.
  SetFingerprints fingerprints;
  std::int64_t train_samples = 0, test_samples = 0;  ///< 0 where it does not say
  bool light_background = false;                     ///< training images are dark on light by nature
  /// In label order; of checkpoints that do not say, those of the catalogue. May be empty.
  std::vector<std::string> class_names;

  bool can_be_checked() const { return !fingerprints.train.samples.empty(); }
};

/// The manifest's "data" for a run of `job` on `data`.
std::map<std::string, std::string> describe_data(const Job& job, const TrainTestData& data,
                                                 const SetFingerprints& fingerprints);

/// @param checkpoint  for messages
/// @throws DataError  a value that cannot be right
DataRecord read_data_record(const CheckpointFacts& facts, const std::string& checkpoint);

/// What differs between the recorded data and those at hand, with both values: "mnist train samples (sha256
/// 0123456789abcdef then, fedcba9876543210 now)". Empty: they are the same, or cannot be checked.
std::vector<std::string> data_differences(const DataRecord& record, const TrainTestData& now,
                                          const SetFingerprints& fingerprints);

/// For a run that goes on. Of a set that is made in memory the test half may have another size than before,
/// if the job says so.
/// @throws DataError  naming what differs, both places, and what to do
void require_same_data(const CheckpointFacts& facts, const Job& job, const TrainTestData& now,
                       const SetFingerprints& fingerprints);

/// Where the newest checkpoint of the run that `job` goes on with had its data: for data.root=auto, which
/// looks there first. Empty if there is none, or it does not say. Never throws: this is only a hint, the data
/// themselves are compared later.
std::string recorded_directory(const Job& job) noexcept;

}  // namespace lockstep
