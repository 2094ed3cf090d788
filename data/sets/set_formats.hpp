// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The formats that data sets are stored in, or the ways in which they are made: one table.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/set_files.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// How large a data set is and what it looks like, without loading its images.

struct SetOutline {
  ImageShape shape;
  int classes = 0;
  std::int64_t train_samples = 0, test_samples = 0;
  std::int64_t validation_samples = 0;  ///< of files of its own; 0: there are none
  bool is_fp32 = false;                 ///< its features; otherwise bytes
  bool on_disk = false;                 ///< its images stay there
};

/// Of a set that is known by name what is published, whatever its files are, if they are there at all. Of
/// people's own data what the headers of their files and the labels say.
/// @throws ConfigError       unknown set; own data without a directory
/// @throws MissingDataError, DataError  own data that are not there, or damaged, as load_dataset
SetOutline outline_of(const DatasetOptions& options);

/// Sets of either kind come named "SET train" and "SET test", and not normalised yet.
struct SetFormat {
  std::string_view name;  ///< in data/sets/catalogue.txt

  /// What a directory must hold to be taken for a set of this format; null: it is made in memory.
  std::vector<FileNames> (*files)(const SetEntry& set);
  /// From files found so: all of train and test, and validation where the options ask for files.
  /// @throws DataError
  TrainTestData (*load)(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);
  /// What the files' headers say, for sets of which nothing else is known; null: there are none in this
  /// format.
  SetOutline (*outline)(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);
  /// Without files.
  TrainTestData (*make)(const DatasetOptions& options);

  bool has_pictures = false;  ///< its samples are decoded, in the form that is asked for

  bool is_made() const { return make != nullptr; }
};

/// @throws ConfigError  the catalogue names a format that there is not
const SetFormat& format_of(const SetEntry& set);

// Image sets from IDX files: MNIST, its relatives, and people's own data.
//
// images of grey pixels    [sample][row][column]
// images with channels     [sample][row][column][channel], as pictures are stored; of people's own sets
// labels                   [sample], or of people's own data [sample][class], 1 for each label that a sample has

/// Training images, training labels, test images, test labels: as the set's entry names them. People's own
/// may be called as MNIST's or with "test" for "t10k", with "idx4" where images have channels, and with "idx2" where
/// samples have several labels.
std::vector<FileNames> idx_set_files(const SetEntry& set);

/// Images and labels of a validation half, which people's own sets may have: both of them, or none.
std::vector<FileNames> idx_validation_files();

/// Of a set of people's own: from the headers of the images, and the labels.
SetOutline outline_of_idx_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

/// Reads the files at the same time, in threads of its own, and checks that they belong together. The
/// images are [channel][row][column] afterwards. Classes: those that have names, else up to the largest
/// label, or as many as a sample of several labels has bytes.
/// @throws DataError  as load_dataset; where several files are damaged, names the first in the order of
/// idx_set_files
TrainTestData load_idx_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// Sets in shards, which stay on disk (data/sets/shards.hpp).

std::vector<FileNames> shard_set_files(const SetEntry& set);
SetOutline outline_of_shard_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);
/// Reads index, labels and digests, and no image. @throws DataError, MissingDataError  a file that is not what it must be
TrainTestData load_shard_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// Folders of pictures, a folder for each class, as `lockstep convert` reads them; the pictures are decoded when they are
// needed (data/pictures/picture_store.hpp).

std::vector<FileNames> picture_set_files(const SetEntry& set);
/// @throws MissingDataError, DataError  as find_sorted_pictures; a picture that is damaged
SetOutline outline_of_picture_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);
TrainTestData load_picture_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// WebDataset's archives, train*.tar, test*.tar and val*.tar (data/sets/tar_index.hpp); likewise.

std::vector<FileNames> tar_set_files(const SetEntry& set);
/// @throws MissingDataError  there are no such archives; DataError  as find_tar_samples, or a picture that is damaged
SetOutline outline_of_tar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);
TrainTestData load_tar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

// CIFAR-10 and sets like it in its binary format: https://www.cs.toronto.edu/~kriz/cifar.html, "binary
// version".
//
// records of   label bytes, of which the last counts | [channel][row][column], as the set's entry has them
//
// and nothing else: no header, and as many records a file as there are.

/// What a file of records holds.
struct CifarRecords {
  std::vector<std::int32_t> labels;
  std::vector<std::uint8_t> images;  ///< [record][features]
};

struct CifarLayout {
  std::size_t label_bytes = 1;
  std::size_t features = 0;
  std::size_t classes = 0;

  std::size_t record_bytes() const { return label_bytes + features; }
};

/// @param name  for messages
/// @throws DataError  naming offset and cause: no records, a part of one, a label that there is no class for,
/// more than an IDX file could hold, gzip damage
CifarRecords parse_cifar(std::span<const std::uint8_t> file, const std::string& name,
                         const CifarLayout& layout);

/// The files that the set's entry names; those that begin with "test" hold the test images.
std::vector<FileNames> cifar_set_files(const SetEntry& set);

/// One label byte a record. Reads all files at the same time; of several damaged ones the first is named.
/// @throws DataError
TrainTestData load_cifar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

/// Two label bytes a record, coarse and fine, as CIFAR-100 has them: the fine one is taken.
/// @throws DataError
TrainTestData load_cifar_fine_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options);

}  // namespace lockstep
