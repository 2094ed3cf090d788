// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WebDataset's archives. Files in a tar archive are found by reading its headers alone (ustar, pax, and
/// GNU's long names), and the labels and samples that they are. They are read at each start: sizes and times of an
/// archive do not tell whether its labels have changed.
#pragma once

#include "data/sets/set_formats.hpp"
#include "data/stored_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A regular file in an archive.
struct TarEntry {
  std::string name;          ///< without NUL and line end
  std::uint64_t offset = 0;  ///< its first byte's
  std::uint64_t bytes = 0;   ///< all of them lie in the archive
};

/// Allocates memory for one name at most, for any archive.
class TarReader {
 public:
  /// Bytes from an offset on; fewer than asked for only at the end. @returns how many
  using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<std::uint8_t> to)>;

  /// @param bytes  size of the archive
  /// @param name   for messages
  TarReader(ReadAt read, std::uint64_t bytes, std::string name)
      : read_(std::move(read)), bytes_(bytes), name_(std::move(name)) {}
  /// Borrows the archive.
  explicit TarReader(const StoredFile& archive)
      : TarReader(
            [&archive](std::uint64_t offset, std::span<std::uint8_t> to) { return archive.read(offset, to); },
            archive.size(), archive.name()) {}

  /// The next file, directories left out; nothing: the mark at the end was reached. It is a block of zeros or more, up
  /// to 1 MiB, which is the largest record of a tape.
  /// @throws DataError  naming offset and cause: an archive that is cut off, a header that is damaged or as large as
  /// none is, links, devices, more after the mark; IoError
  std::optional<TarEntry> next();
  /// @throws DataError  the archive ends before; IoError
  std::string read_text(std::uint64_t offset, std::uint64_t bytes) const;
  [[noreturn]] void fail(std::uint64_t offset, const std::string& cause) const;

 private:
  /// Facts about a file from headers before its header.
  struct Extended {
    std::string path{};
    std::optional<std::uint64_t> bytes{};
  };

  void read(std::uint64_t offset, std::span<std::uint8_t> to) const;
  void take_pax(std::uint64_t offset, std::string_view text, Extended& of_next) const;
  void skip(std::uint64_t bytes);
  void require_end() const;

  ReadAt read_;
  std::uint64_t bytes_;
  std::string name_;
  std::uint64_t at_ = 0;
};

// Labels of samples, and the classes that follow. A label is a word, JSON in ASCII: a whole number from 0
// on, a name, or a list of either, of a sample with any number of labels.

/// DatasetOptions::label for the file .cls; all others are keys of .json.
inline constexpr const char* kLabelInCls = "cls";

inline constexpr std::uint64_t kMostBytesOfCls = std::uint64_t{64} << 10,
                               kMostBytesOfJson = std::uint64_t{1} << 20;

/// The text of a .cls. It has whole numbers with spaces or commas between, of which one is the label and several are
/// a list; or a line that does not begin with a number and is a name. Zeros before a number do not count, as in
/// Python's int(). Nothing: it holds neither, or a number above kMostShardClasses - 1.
std::optional<std::string> label_of_cls(std::string_view text);
/// Label in a .json: the value of its object under a key. Nothing: it is no such object, or has no label there.
std::optional<std::string> label_of_json(std::string_view text, const std::string& key);

/// Labels of one half.
struct TarHalfLabels {
  std::vector<std::int32_t> labels;  ///< [sample] of a class, or a row of the set's label_sets
  std::string sha256;                ///< for samples with several: over their number, and each, as 32 bits
};

struct TarLabels {
  std::vector<std::string> class_names;
  std::vector<TarHalfLabels> halves = {};
  std::optional<LabelSets> sets = {};  ///< there are lists: each sample has any number of labels
  bool are_names = false;              ///< rather than numbers
};

/// Names a sample for messages: by its half and its place in it.
using NameOfSample = std::function<std::string(std::size_t half, std::size_t sample)>;

/// Numbers are classes; names are classes in the order of `names`, or of their bytes if it is empty.
/// @param halves  [half][sample] words
/// @param names   names of the classes; empty: not known
/// @param what    the set that they are of, for messages
/// @param name_of  samples that a message is about; null: they go unnamed
/// @throws DataError  names and numbers, names that `names` does not have, more classes than it has or than there may be
TarLabels classes_of_words(std::span<const std::vector<std::string>> halves, std::vector<std::string> names,
                           const std::string& what, const NameOfSample& name_of = {});

// Samples that an archive holds.

struct TarSample {
  TarEntry picture;
  std::string label;  ///< a word, see above
};

/// A sample is neighbouring entries that are called alike up to the first dot of their last part. One of
/// them is a picture by the rest of its name (jpg, jpeg, png, webp, bmp, ppm, pgm), one is called cls, or with a key
/// json, and holds the label. Others do not count, nor do samples that have neither.
/// @param label  kLabelInCls, or a key
/// @throws DataError  as TarReader; a sample that lacks one of the two, or has it twice, or comes twice; a label that
///                    is none; a picture and a label with a dot in what people mean as their name
std::vector<TarSample> find_tar_samples(TarReader archive, const std::string& label);

// The archives of a directory. They are *.tar in it, and in its folders that are called after a half, in letters of
// any case.

struct TarFiles {
  std::vector<std::filesystem::path> train, test, validation;  ///< sorted
  std::vector<std::filesystem::path> others;                   ///< called after no half
  std::vector<std::filesystem::path> compressed;               ///< .tar.gz and its like, which are not read
};

/// The half is that of the folder. Otherwise it is that with which the name begins, train, test or val; else that of
/// a word in it, also training, testing, valid and validation.
/// @throws MissingDataError  there are none; DataError  all are compressed, or a name has words of two halves; IoError
TarFiles find_tar_files(const std::filesystem::path& directory);

}  // namespace lockstep
