// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A labelled data set in memory, and how to get one by name.
#pragma once

#include "common/aligned_buffer.hpp"
#include "data/fingerprint.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// Samples and labels. Images stay uint8 as they are on disk and are normalised on the way into a batch:
/// value = byte * scale + shift. Sets that are not images hold fp32 features instead. Exactly one of the two
/// is filled.
struct Dataset {
  std::string name;  ///< "mnist train"
  ImageShape shape;  ///< of one sample
  int classes = 0;
  std::vector<std::int32_t> labels;    ///< [sample], each in [0, classes)
  AlignedBuffer<std::uint8_t> images;  ///< [sample][features], or empty
  AlignedBuffer<float> features;       ///< [sample][features], or empty
  float scale = 1.0F, shift = 0.0F;    ///< 1 / (255 * std) and -mean / std
  Fingerprint quick;                   ///< quick_fingerprint_of it, by load_dataset

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

struct TrainTestData {
  Dataset train, test;
  std::string directory;  ///< of its files; empty: made in memory
  std::string origin;     ///< where it came from, for the start-up line: a directory, or "made in memory"
};

/// Indices are 32-bit, and one sample of `synthetic` is 784 bytes: a limit that catches a slip of the finger.
inline constexpr std::int64_t kMostMadeSamples = 10'000'000;

/// The `data:` section of a job file as far as loading is concerned.
struct DatasetOptions {
  std::string set = "mnist";   ///< mnist | fashion-mnist | kmnist | random | synthetic
  std::string root = "auto";   ///< see resolve_data_root
  std::string directory = {};  ///< that holds the files themselves: its answer. Empty: `root` is asked
  double mean = 0.1307;        ///< of the training images scaled to [0, 1]
  double std = 0.3081;
  std::uint64_t seed = 1234;       ///< of random and synthetic
  std::int64_t train_samples = 0;  ///< of random and synthetic; 0: the set's default. Of file sets: must be 0
  std::int64_t test_samples = 0;
};

/// The directory that holds the files of an image set: `first`, if it is not empty and does; of a given
/// `root`, ROOT/SET or ROOT itself; of `auto`, the first of $LOCKSTEP_DATA/SET, $LOCKSTEP_DATA,
/// ${XDG_CACHE_HOME:-~/.cache}/lockstep/SET, /usr/share/datasets/SET that has all four files. Empty for a set
/// that is made in memory.
///
/// This is the only part of loading that reads the environment. Whoever loads in a thread while another
/// thread may set variables (MPI_Init does) calls it first and passes its answer on as
/// DatasetOptions::directory.
/// @throws MissingDataError, ConfigError  as load_dataset
std::string resolve_data_root(const std::string& set, const std::string& root, const std::string& first = "");

/// Whether a set's samples are made rather than read. @throws ConfigError  unknown set
bool is_made_in_memory(const std::string& set);

/// Loads or makes a data set. Safe in a thread of its own; of `root: auto` see resolve_data_root.
/// @throws MissingDataError  names every place looked at and the command that fetches the set
/// @throws DataError         names file, offset and what is wrong: truncated, oversized header, gzip damage,
///                           labels out of range, image and label counts that differ
/// @throws ConfigError       unknown set, numbers out of range, a number of samples for a set from files
TrainTestData load_dataset(const DatasetOptions& options);

}  // namespace lockstep
