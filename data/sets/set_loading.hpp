// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Gets a data set by name: from its files, or made in memory.
#pragma once

#include "data/dataset.hpp"
#include "data/picture_form.hpp"
#include "data/sets/hold_out.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct LeaveOutList;  // data/sets/leave_out.hpp

/// Indices are 32-bit, and one sample of `synthetic` is 784 bytes: a limit that catches a slip of the finger.
inline constexpr std::int64_t kMostMadeSamples = 10'000'000;

/// The `data:` section of a job file as far as loading is concerned.
struct DatasetOptions {
  std::string set = "mnist";   ///< a name in data/sets/catalogue.txt
  std::string root = "auto";   ///< see resolve_data_root
  std::string directory = {};  ///< that holds the files themselves: its answer. Empty: `root` is asked
  /// Mean and deviation of the training images scaled to [0, 1]. Empty: those of the set's entry, or
  /// measured.
  std::vector<double> mean = {}, std = {};
  std::uint64_t seed = 1234;  ///< for sets made in memory, and for the choice of samples
  /// Samples of a set made in memory; 0: the set's default. In other sets so many of those that are not held out are
  /// trained on, or make the test half; 0: all.
  std::int64_t train_samples = 0, test_samples = 0;
  HoldOut validation = {};
  /// Training samples that are neither trained on nor validated on; null: none.
  std::shared_ptr<const LeaveOutList> leave_out = nullptr;
  bool in_memory = false;     ///< the images that could stay on disk are read all at once, too
  PictureForm pictures = {};  ///< for sets of pictures: what they become
  std::string columns = {};   ///< names that give a table's columns their order; empty: the table's order
  std::string label = "cls";  ///< for WebDataset's archives: labels are in .cls, or under this key in .json
  std::string cache = {};  ///< keeps what was measured of pictures, as user_cache(); empty: nothing is kept
};

/// Samples that a run takes of the two halves of its set.
struct PartSizes {
  std::int64_t train = 0, test = 0, validation = 0;
};

/// Sizes of the halves as in files or as made, less the samples left out.
/// @throws DatasetOptionError  more than there are, none left to train on, or no validation half where one is asked for
PartSizes part_sizes(const DatasetOptions& options, const PartSizes& files);

/// Moves samples from `train` to `validation`, and leaves others out, as the options say.
/// @throws DatasetOptionError  as part_sizes; MemoryError
void choose_parts(TrainTestData& data, const DatasetOptions& options);

/// The directory that holds the files of a set: `first`, if it is not empty and does. Otherwise the first of
/// candidate_places (data/sets/set_files.hpp) that has them all. Empty for a set that is made in memory.
///
/// This and user_cache() are the only parts of loading that read the environment. A caller that loads in a thread while
/// another thread may set variables (MPI_Init does) calls it first and passes its answer on as
/// DatasetOptions::directory.
/// @throws MissingDataError, ConfigError  as load_dataset
std::string resolve_data_root(const std::string& set, const std::string& root, const std::string& first = "");
/// Finds a set that was read before: in `named`, or, if that is empty, first where it was then.
std::string resolve_data_root(const DatasetOptions& before, const std::string& named);
/// ${XDG_CACHE_HOME:-~/.cache}/lockstep: the only place of what is kept for later starts. Nothing is written into
/// directories of data. Empty: this user has none.
std::string user_cache();

/// True if a set's samples are made rather than read. @throws ConfigError  unknown set
bool is_made_in_memory(const std::string& set);
/// The names of those sets.
std::vector<std::string_view> made_sets();
/// True if a set's samples are pictures that are decoded, as DatasetOptions::pictures says. @throws ConfigError
bool has_pictures(const std::string& set);

/// True if load_dataset leaves nothing of such a set on disk. For a set in shards it reads the index.
/// @throws as load_dataset
bool loads_into_memory(const DatasetOptions& options);

/// Loads or makes a data set. May run on a separate thread; for `root: auto` see resolve_data_root.
/// @throws MissingDataError  names every place looked at and the command that fetches the set
/// @throws DataError         names file, offset and what is wrong: truncated, oversized header, gzip damage,
///                           labels out of range, image and label counts that differ
/// @throws ConfigError       unknown set, numbers out of range, more of them than the images have channels, more
///                           samples than there are, people's own data without a directory, nothing left to train on
TrainTestData load_dataset(const DatasetOptions& options);

}  // namespace lockstep
