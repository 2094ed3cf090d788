// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CIFAR-10 and sets like it in its binary format: https://www.cs.toronto.edu/~kriz/cifar.html, "binary
/// version".
///
///   records of   label bytes, of which the last counts | [channel][row][column], as the set's entry has them
///
/// and nothing else: no header, and as many records a file as there are.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/set_files.hpp"

#include <span>
#include <string>
#include <vector>

namespace lockstep {

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
TrainTestData load_cifar_set(const SetEntry& set, const SetFiles& files);

/// Two label bytes a record, coarse and fine, as CIFAR-100 has them: the fine one is taken.
/// @throws DataError
TrainTestData load_cifar_fine_set(const SetEntry& set, const SetFiles& files);

}  // namespace lockstep
