// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From folders of pictures to the files of a set that can be trained on: data.set idx, or shards.
#pragma once

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/pictures/picture.hpp"
#include "data/sets/hold_out.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

// Pictures sorted into folders: one for each class, named after it.

/// A picture and the class of its folder.
struct LabelledPicture {
  std::filesystem::path path;
  std::uint32_t label = 0;
};

struct SortedPictures {
  std::vector<std::string> class_names;  ///< sorted bytewise, so that labels are the same on every machine
  std::vector<LabelledPicture> train, test, validation;
  bool has_validation_half = false;  ///< there is a folder for it, whether it was read or not
  bool is_train_alone = false;       ///< train/ has neither test/ nor val/ beside it
  std::filesystem::path
      test_stand_in;         ///< folder for validation that is used for testing, since there is no test/
  std::size_t left_out = 0;  ///< files and folders that are not read
  std::map<std::string, std::size_t> left_out_kinds{};  ///< left_out by kind: ".txt file", "folder"
  std::filesystem::path first_left_out;                 ///< one of them
};

/// Looks into FOLDER/CLASS, or FOLDER/train/CLASS and FOLDER/test/CLASS, and FOLDER/val/CLASS where it is there. The
/// halves may also be called training, testing, validation or valid, in letters of any case. Without test/, val/ is
/// for testing, and without both a share of train/. A class's pictures may lie in folders of its folder, which are
/// read once each. Pictures are regular files with an ending of pictures, or symbolic links to such; names that begin
/// with a dot do not count. In the order of classes, and of the bytes of paths.
/// @param skipped  pictures to be treated as missing
/// @throws MissingDataError  no such folder, no folders of classes in it, or a class without pictures
/// @throws DataError         a name that cannot be a class's, too many classes, a class that is not in train/, too few
///                           pictures for some of them to be for testing; halves that cannot be told from classes, or
///                           are there twice
/// @throws UsageError        a choice is given, but those images have a separate folder
SortedPictures find_sorted_pictures(const std::filesystem::path& folder, const SplitChoice& choice,
                                    const std::set<std::filesystem::path>& skipped = {});

/// To be said of them, a sentence each. They say which folder is for testing where that is not test/, and what is
/// left out.
std::vector<std::string> remarks_on(const SortedPictures& found);

/// All pictures in a folder and in the folders in it, by the same rules, sorted. Links to folders are not followed.
/// @throws MissingDataError  there are none; IoError
std::vector<std::filesystem::path> find_pictures(const std::filesystem::path& folder);

struct ConversionOptions {
  std::string from, to;             ///< see find_sorted_pictures; the directory of the new set
  std::optional<PictureSize> size;  ///< to scale them to; nothing: they must all have the same
  PictureFit fit = PictureFit::kSqueeze;
  PictureColour colour = PictureColour::kGrey;
  SplitChoice split;
  bool replace = false;       ///< the set that is in `to` already
  bool skip_damaged = false;  ///< go on without pictures that cannot be read
  int threads = 1;            ///< that read pictures
  std::function<void(std::size_t done, std::size_t all)> on_progress{};  ///< after each picture
};

struct DamagedPicture {
  std::filesystem::path path;
  std::string reason;  ///< begins with the path
};

/// Pictures that cannot be read: all that there are, sorted.
class DamagedPicturesError : public DataError {
 public:
  explicit DamagedPicturesError(std::vector<DamagedPicture> pictures);
  const std::vector<DamagedPicture>& pictures() const { return pictures_; }

 private:
  std::vector<DamagedPicture> pictures_;
};

struct Conversion {
  SortedPictures pictures;
  ImageShape shape;
  std::size_t reshaped = 0;               ///< had other proportions than options.size
  std::size_t made_grey = 0;              ///< were coloured
  std::size_t had_16_bits = 0;            ///< a channel, rounded to 8
  std::vector<DamagedPicture> damaged{};  ///< were left out
};

/// Writes images, labels, names of pictures and of classes into `to` as shards; makes that directory where it is
/// missing. Nothing appears under its final name before all of it is written; one conversion at a time works in a
/// directory. Each thread needs the memory of three pictures, for any number of them. If pictures are left out, all are
/// read once more, and the set is the same as if they had never been there.
/// @throws UsageError        files of a set are there already, and shall stay, or something else has their names; `to`
///                           lies in `from`, where it would be a class
/// @throws MissingDataError, DataError  as find_sorted_pictures; pictures of different sizes
/// @throws DamagedPicturesError  unless skip_damaged
/// @throws IoError           `to` cannot be written
Conversion convert_pictures(Env& env, const ConversionOptions& options);

}  // namespace lockstep
