// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which samples an archive of WebDataset holds, and the index that spares reading its headers again.
///
/// ARCHIVE.index: a line of JSON (version, bytes and time of the archive, number of samples; of version 2 the key of the
/// labels); "OFFSET BYTES LABEL NAME" for each; and the SHA-256 of all that in hexadecimal. Where all labels are numbers of
/// .cls it has version 1.
#pragma once

#include "data/sample_store.hpp"
#include "data/sets/tar_labels.hpp"
#include "data/sets/tar_reader.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct TarSample {
  TarEntry picture;
  std::string label;  ///< a word, see tar_labels.hpp
  friend bool operator==(const TarSample& a, const TarSample& b) {
    return a.label == b.label && a.picture.name == b.picture.name && a.picture.offset == b.picture.offset &&
           a.picture.bytes == b.picture.bytes;
  }
};

/// Entries that follow one another and are called alike up to the first dot of their last part are a sample: one of them
/// is a picture by the rest of its name (jpg, jpeg, png, webp, gif, bmp, ppm, pgm), one is called cls, or with a key json,
/// and holds the label. Others do not count, nor do samples that have neither.
/// @param label  kLabelInCls, or a key
/// @throws DataError  as TarReader; a sample that lacks one of the two, or has it twice, or comes twice; a label that is none
std::vector<TarSample> find_tar_samples(const TarReader::ReadAt& read, std::uint64_t bytes,
                                        const std::string& archive, const std::string& label);

/// The same of a file, from the index beside it where that is of this archive. Otherwise headers are read, and the index
/// is written if it can be.
/// @throws DataError  too, if the index says what its archive cannot hold
std::vector<TarSample> indexed_tar_samples(const StoredFile& archive, const std::string& label);

/// @param archive  that it must be of; its size bounds what is read
/// @returns false: it is damaged, or of another archive or other labels. @throws DataError  it lies
bool parse_tar_index(std::string_view text, const std::string& file, std::uint64_t bytes,
                     std::int64_t changed, const std::string& label, std::vector<TarSample>& samples);
std::string tar_index_text(std::uint64_t bytes, std::int64_t changed, const std::string& label,
                           const std::vector<TarSample>& samples);

}  // namespace lockstep
