// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The formats that data sets are stored in, or the ways in which they are made: one table. Their loaders share samples
/// with several labels.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_loading.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

// Samples with any number of labels: Dataset::label_sets while a set is read.

/// Limit for sets whose samples have several labels: a row has a byte for each class.
inline constexpr std::int64_t kMostClassesOfLabelSets = 65'536;

/// Gives each combination of labels a row, in the order in which they come.
class LabelSets {
 public:
  /// @param what  of which set they are, for messages
  LabelSets(std::size_t classes, std::string what) : classes_(classes), what_(std::move(what)) {}

  /// @param labels  each below the number of classes
  /// @throws MemoryError  so many combinations do not fit
  std::int32_t row_of(std::span<const std::uint32_t> labels);
  /// Puts all rows into the halves of a set, once the last sample has come.
  void give_to(TrainTestData& data) const;

 private:
  std::size_t classes_;
  std::string what_;
  std::unordered_map<std::string, std::int32_t> row_of_;  ///< by its bytes
  std::vector<std::uint8_t> table_;
  std::size_t looked_at_ = 0;  ///< bytes of the table that memory was asked for
};

/// Classes of a row, ascending.
std::vector<std::uint32_t> labels_in(std::span<const std::uint8_t> row);

// How large a data set is and what it looks like, without loading its images.

struct SetOutline {
  ImageShape shape;
  int classes = 0;
  std::int64_t train_samples = 0, test_samples = 0;
  std::int64_t validation_samples = 0;  ///< in files of its own; 0: there are none
  bool is_fp32 = false;                 ///< its features; otherwise bytes
  bool on_disk = false;                 ///< its images stay there
  std::vector<std::string> remarks{};   ///< TrainTestData::remarks
};

/// Outlines a set. One that is known by name is as published, whatever its files are, if they are there at all.
/// People's own data are as the headers of their files and the labels say.
/// @throws ConfigError       unknown set; own data without a directory
/// @throws MissingDataError, DataError  own data that are not there, or damaged, as load_dataset
SetOutline outline_of(const DatasetOptions& options);

/// Sets of either kind come named "SET train" and "SET test", and not normalised yet.
struct SetFormat {
  std::string_view name;  ///< in data/sets/catalogue.txt

  /// Files that a directory must hold to be taken for a set of this format. Null: none, or it is made in memory.
  std::vector<FileNames> (*files)(const SetEntry& set) = nullptr;
  /// From files found so: all of train and test, and validation where the options ask for files.
  /// @throws DataError
  TrainTestData (*load)(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) = nullptr;
  /// Reads the files' headers, for sets of which nothing else is known. Null: there are none in this format, or `load`
  /// reads no more.
  SetOutline (*outline)(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) = nullptr;
  /// Without files.
  TrainTestData (*make)(const SetEntry& set, const DatasetOptions& options) = nullptr;

  bool has_pictures = false;      ///< its samples are decoded, in the form that is asked for
  bool may_stay_on_disk = false;  ///< its samples; otherwise `load` always brings them into memory

  bool is_made() const { return make != nullptr; }
  /// find_set_files() with these.
  SetFiles find(const SetEntry& set, const std::vector<std::filesystem::path>& places) const {
    return find_set_files(set, files != nullptr ? files(set) : std::vector<FileNames>(), places);
  }
};

/// IDX files, and sets that are made: what programs have that link no library of pictures (trainer/library). Null: it is
/// another format.
const SetFormat* find_basic_format(std::string_view name);
/// @throws ConfigError  the catalogue names a format that there is not
const SetFormat& format_of(const SetEntry& set);
/// load_dataset() of a set in this format.
TrainTestData load_set(const SetEntry& set, const SetFormat& format, const DatasetOptions& options);

// Image sets from IDX files: MNIST, its relatives, and people's own data.
//
// images of grey pixels    [sample][row][column]
// images with channels     [sample][row][column][channel], as pictures are stored; of people's own sets
// labels                   [sample]

/// Training images, training labels, test images, test labels: as the set's entry names them. People's own
/// may be called as MNIST's or with "test" for "t10k", with "idx4" where images have channels. Labels called "idx2", of
/// several a sample, are found and refused.
std::vector<FileNames> idx_set_files(const SetEntry& set);

/// Images and labels of a validation half, which people's own sets may have: both of them, or none.
std::vector<FileNames> idx_validation_files();

/// Outlines a set of people's own: from the headers of the images, and the labels.
SetOutline outline_of_idx_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

/// Reads the files at the same time, in threads of its own, and checks that they belong together. The
/// images are [channel][row][column] afterwards. Classes: those that have names, else up to the largest label.
/// @throws DataError  as load_dataset; where several files are damaged, names the first in the order of
/// idx_set_files
TrainTestData load_idx_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// Sets in shards, which stay on disk (data/sets/shards.hpp).

SetOutline outline_of_shard_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);
/// Reads index, labels and digests, and no image. @throws DataError, MissingDataError  a file that is not what it must be
TrainTestData load_shard_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// Folders of pictures, a folder for each class, as `lockstep convert` reads them. The pictures are decoded when they are
// needed (data/pictures/picture_store.hpp).

/// @throws MissingDataError, DataError  as find_sorted_pictures; a picture that is damaged
TrainTestData load_picture_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// WebDataset's archives (data/sets/tar_samples.hpp); likewise. Where none is for testing, a fifth of each class is.

/// @throws MissingDataError  as find_tar_files; DataError  as find_tar_samples, or a picture that is damaged
TrainTestData load_tar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// CIFAR-10 and sets like it (data/sets/cifar_set.hpp).

/// The files that the set's entry names. Those that begin with "test" hold the test images.
std::vector<FileNames> cifar_set_files(const SetEntry& set);

/// One label byte a record; in "cifar-fine" two, coarse and fine, as CIFAR-100 has them: the fine one is taken. Reads
/// all files at the same time; of several damaged ones the first is named.
/// @throws DataError
TrainTestData load_cifar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

}  // namespace lockstep
