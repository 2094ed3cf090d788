// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Archives of numpy's that are whole sets, with an array of samples and one of labels for each half.
///
///   x_train, y_train, x_test, y_test and perhaps x_val, y_val                                Keras
///   train_images, train_labels, test_images, test_labels and perhaps val_images, val_labels  MedMNIST
///
/// samples  uint8 [sample][row][column] or with channels, which become images; or numbers in 1 to 4 dimensions
/// labels   [sample] or [sample][1] of whole numbers or text; or [sample][class] of ones and zeros
#pragma once

#include "common/env.hpp"
#include "data/sets/set_loading.hpp"
#include "data/tables/table_conversion.hpp"

#include <string>

namespace lockstep {

struct NpzSetConversion {
  TableConversion samples;  ///< in each class; a sample of several labels counts for each of them
  PartSizes sizes;
  bool is_fp32 = false;         ///< data.set: table; otherwise images, data.set: shards
  bool has_label_sets = false;  ///< a sample has any number of labels
  std::string order;            ///< how four dimensions were taken; empty: there are fewer
};

/// True of a .npz with the training samples of a half, and without the arrays of a table.
/// @throws DataError, MissingDataError, IoError  as NpzArchive
bool is_npz_set(const std::string& file);

/// Writes the set with its halves as they are. Reads the labels first, and needs 12 bytes for each sample.
/// @param replace  the set that is in `to` already
/// @throws DataError  an array is missing, or is of another shape or kind; samples that are no numbers, labels that are
///                    no classes
/// @throws UsageError, IoError  as ShardWriter
NpzSetConversion convert_npz_set(Env& env, const std::string& from, const std::string& to, bool replace);

}  // namespace lockstep
