// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CIFAR-10 and sets like it in its binary format: https://www.cs.toronto.edu/~kriz/cifar.html, "binary version".
///
/// records of   label bytes, of which the last counts | [channel][row][column], as the set's entry has them
///
/// and nothing else: no header, and as many records a file as there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

class ByteSource;  // data/byte_source.hpp

/// Contents of a file of records.
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

/// @param file  plain or gzip
/// @throws DataError  naming offset and cause: no records, a part of one, a label that there is no class for,
/// more than an IDX file could hold, gzip damage
CifarRecords parse_cifar(ByteSource& file, const CifarLayout& layout);

}  // namespace lockstep
