// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets whose samples are pictures as people keep them: folders, and WebDataset's archives, read as they are.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/pictures/conversion.hpp"
#include "data/pictures/picture_store.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"
#include "data/sets/tar_samples.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A half as it was found.
struct PictureHalf {
  PictureList pictures;
  std::vector<std::int32_t> labels;   ///< classes, or rows of the set's label_sets
  std::string label_digest{};         ///< replaces them in a fingerprint, for samples with several labels
  std::vector<std::uint64_t> states;  ///< the files' states: means measured in others do not count
  std::vector<std::string> words{};   ///< labels as archives have them, until the classes are known
};

struct PictureHalves {
  PictureHalf train, test;
  PictureHalf validation;            ///< as far as the options ask for it
  bool has_validation_half = false;  ///< it has separate files, asked for or not
  std::vector<std::string> class_names;
  std::vector<std::string> remarks{};
  std::optional<LabelSets> sets{};  ///< labels of samples that have several
};

template <typename Number>
std::span<const std::byte> bytes_of(const Number& number) {
  return std::as_bytes(std::span(&number, 1));
}

Fingerprint fingerprint_of(const PictureHalf& half, const ImageShape& shape, const PictureForm& form) {
  const PictureList& pictures = half.pictures;
  Sha256 samples;
  const std::string head =
      fmt::format("{} pictures, {} x {} x {}, fit {}\n", pictures.size(), shape.channels, shape.height,
                  shape.width, form.has_size() ? static_cast<int>(form.fit) : -1);
  samples.update(std::as_bytes(std::span(head)));
  for (std::int64_t i = 0; i < pictures.size(); ++i) {
    samples.update(std::as_bytes(std::span(pictures.name_of(i))));
    samples.update(bytes_of('\0'));
    samples.update(bytes_of(pictures[i].bytes));
  }
  return {.samples = hex(samples.finish()),
          .labels = half.label_digest.empty() ? hex(sha256(std::as_bytes(std::span(half.labels))))
                                              : half.label_digest};
}

Dataset open_half(std::string name, PictureHalf half, std::size_t classes, const ImageShape& shape,
                  const DatasetOptions& options) {
  Dataset set{.name = std::move(name), .shape = shape, .classes = static_cast<int>(classes)};
  set.file_fingerprint = fingerprint_of(half, shape, options.pictures);
  set.labels = std::move(half.labels);
  const std::string key = set.file_fingerprint->samples + quick_digest(std::as_bytes(std::span(half.states)));
  set.store = std::make_shared<const PictureStore>(PictureStore::Contents{
      .name = set.name,
      .pictures = std::move(half.pictures),
      .form = options.pictures,
      .shape = shape,
      .sums_file = options.cache.empty()
                       ? fs::path()
                       : fs::path(options.cache) / "sums" / hex(sha256(std::as_bytes(std::span(key)))),
      .sums_key = key});
  return set;
}

/// Decodes a picture at most. Fingerprints are of names and sizes of the pictures and of their form: none is read.
/// @param set  names the halves
TrainTestData open_pictures(const std::string& set, PictureHalves halves, const DatasetOptions& options) {
  const ImageShape shape = PictureStore::shape_of(halves.train.pictures, options.pictures);
  const auto open = [&](SetHalf half, PictureHalf& pictures) {
    return open_half(fmt::format("{} {}", set, name_of(half)), std::move(pictures), halves.class_names.size(),
                     shape, options);
  };
  TrainTestData data;
  data.train = open(SetHalf::kTrain, halves.train);
  data.test = open(SetHalf::kTest, halves.test);
  if (halves.validation.pictures.size() > 0) data.validation = open(SetHalf::kValidation, halves.validation);
  data.has_validation_half = halves.has_validation_half;
  data.class_names = std::move(halves.class_names);
  data.remarks = std::move(halves.remarks);
  if (halves.sets) halves.sets->give_to(data);
  return data;
}

/// Notes its state. The first of the times is what copies keep and anyone may set; a write changes the second one.
/// @returns its size
std::uint64_t note_file(const fs::path& path, PictureHalf& half) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw IoError(fmt::format("{}: cannot be examined: {}; check its permissions", path.string(),
                              std::generic_category().message(errno)));
  for (const timespec& time : {status.st_mtim, status.st_ctim})
    half.states.push_back(static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                          static_cast<std::uint64_t>(time.tv_nsec));
  half.states.push_back(status.st_ino);
  return static_cast<std::uint64_t>(status.st_size);
}

// Folders.

PictureHalf half_of(const std::vector<LabelledPicture>& pictures, const fs::path& root) {
  PictureHalf half;
  half.pictures.places = {root};
  for (const LabelledPicture& picture : pictures) {
    half.pictures.add(picture.path.lexically_relative(root).native(), 0, note_file(picture.path, half));
    half.labels.push_back(static_cast<std::int32_t>(picture.label));
  }
  return half;
}

/// @param is_free  a validation half, if there is one, is not for testing
void require_validation_half(const DatasetOptions& options, bool is_free, const std::string& validation,
                             const char* test) {
  if (!options.validation.is_files || is_free) return;
  throw DatasetOptionError(
      "validation", fmt::format("files: {} is the test half, since there is no {}; add {}, or hold training "
                                "samples out, such as 0.1",
                                validation, test, test));
}

PictureHalves find_in_folders(const fs::path& root, const DatasetOptions& options) {
  SortedPictures found = find_sorted_pictures(root, {.leaves_validation = !options.validation.is_files});
  require_validation_half(options, found.test_stand_in.empty(),
                          printable_line(found.test_stand_in.filename().string()) + "/", "test/");
  return {.train = half_of(found.train, root),
          .test = half_of(found.test, root),
          .validation = half_of(found.validation, root),
          .has_validation_half = found.has_validation_half,
          .class_names = std::move(found.class_names),
          .remarks = remarks_on(found)};
}

// WebDataset's archives.

/// The first entry of an archive, for messages.
std::string first_entry_of(const fs::path& path) {
  const StoredFile archive(path);
  const auto entry = TarReader(archive).next();
  return entry ? "the first entry is " + entry->name : "it has no entries";
}

PictureHalf read_half(const std::vector<fs::path>& archives, const std::string& label) {
  PictureHalf found;
  PictureList& pictures = found.pictures;
  pictures.in_archives = true;
  const Clock::time_point start = Clock::now();
  double next_word = 2;
  for (const fs::path& path : archives) {
    if (seconds_since(start) > next_word) {
      print_error(fmt::format("reading the headers of {} ({} of {})", path.string(),
                              pictures.places.size() + 1, archives.size()));
      next_word += 10;
    }
    const StoredFile archive(path);
    pictures.places.push_back(path);
    note_file(path, found);
    for (auto& [picture, word] : find_tar_samples(TarReader(archive), label)) {
      pictures.add(picture.name, picture.offset, picture.bytes);
      found.words.push_back(std::move(word));
    }
  }
  if (pictures.size() > 0) return found;
  throw DataError(fmt::format("{}{}: no samples, pictures with a {}, and {}", archives.front().string(),
                              archives.size() > 1 ? " and those after it" : "",
                              label == kLabelInCls ? ".cls each" : ".json each",
                              printable_line(first_entry_of(archives.front()))));
}

/// Takes a fifth of each class to test with, as of folders; of lists of labels, a fifth of all.
void share_out(PictureHalves& halves) {
  const PictureHalf all = std::exchange(halves.train, {});
  std::vector<std::uint32_t> classes(all.labels.size());
  if (!halves.sets) classes.assign(all.labels.begin(), all.labels.end());
  const auto half_of_sample = split_classes(classes, halves.class_names, {});
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    PictureHalf& half = half_of_sample[i] == SetHalf::kTest ? halves.test : halves.train;
    const auto sample = static_cast<std::int64_t>(i);
    const PictureList::Entry& entry = all.pictures[sample];
    half.pictures.in_archives = true;
    for (std::vector<fs::path>& places = half.pictures.places; places.size() <= entry.place;)
      places.push_back(all.pictures.places[places.size()]);
    half.pictures.add(all.pictures.name_of(sample), entry.offset, entry.bytes);
    half.labels.push_back(all.labels[i]);
  }
  for (PictureHalf* half : {&halves.train, &halves.test}) {
    half->states = all.states;
    if (!halves.sets) continue;
    const std::string both = all.label_digest + hex(sha256(std::as_bytes(std::span(half->labels))));
    half->label_digest = hex(sha256(std::as_bytes(std::span(both))));
  }
}

/// The archives of a training half are there. Messages name those left out, or mistaken for something else.
TarFiles find_halves(const fs::path& directory, std::vector<std::string>& remarks) {
  TarFiles files = find_tar_files(directory);
  const bool has_judges = !files.test.empty() || !files.validation.empty();
  if (files.train.empty() && has_judges)
    throw MissingDataError(fmt::format(
        "{}: holds no archives to train on; let their names begin with train, or put them into train/",
        directory.string()));
  if (files.train.empty()) files.train.swap(files.others);
  if (!has_judges)
    remarks.push_back(
        fmt::format("{}: no archive is named after a test half, such as test-0.tar: a "
                    "fifth of the samples becomes the test half",
                    directory.string()));
  if (files.test.empty() && !files.validation.empty())
    remarks.push_back(fmt::format("{}: val archives are the test half, since no archive is named after test",
                                  directory.string()));
  const auto leave_out = [&](const std::vector<fs::path>& archives, const char* why) {
    if (!archives.empty())
      remarks.push_back(fmt::format("left out {} {}; the first is {}", counted(archives.size(), "archive"),
                                    why, archives.front().string()));
  };
  leave_out(files.others, "not named after a half (train, test or val)");
  leave_out(files.compressed, "that are compressed: unpack them");
  return files;
}

PictureHalves find_in_archives(const SetFiles& files, const DatasetOptions& options) {
  PictureHalves set;
  const TarFiles archives = find_halves(files.directory, set.remarks);
  const bool has_tests = !archives.test.empty(), has_others = !archives.validation.empty();
  require_validation_half(options, has_tests || !has_others, "val*.tar", "test*.tar");
  set.train = read_half(archives.train, options.label);
  if (has_tests || has_others)
    set.test = read_half(has_tests ? archives.test : archives.validation, options.label);
  if (has_tests && has_others && options.validation.is_files)
    set.validation = read_half(archives.validation, options.label);
  const std::array halves = {&set.train, &set.test, &set.validation};
  std::vector<std::vector<std::string>> words;
  for (PictureHalf* half : halves) words.push_back(std::move(half->words));
  TarLabels labels = classes_of_words(
      words,
      files.names.empty() ? std::vector<std::string>() : read_class_names(files.names, kMostShardClasses),
      (files.names.empty() ? files.directory : files.names).string(), [&](std::size_t half, std::size_t i) {
        return halves[half]->pictures.path_of(static_cast<std::int64_t>(i));
      });
  if (labels.are_names && files.names.empty() && options.label == kLabelInCls)
    set.remarks.push_back("labels in .cls are names, and classes are in their order: " +
                          printable_line(first_names(labels.class_names)));
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i]->labels = std::move(labels.halves[i].labels);
    halves[i]->label_digest = std::move(labels.halves[i].sha256);
  }
  set.class_names = std::move(labels.class_names);
  set.sets = std::move(labels.sets);
  if (!has_tests && !has_others) share_out(set);
  set.has_validation_half = has_tests && has_others;
  return set;
}

}  // namespace

TrainTestData load_picture_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  return open_pictures(set.name, find_in_folders(files.directory, options), options);
}

TrainTestData load_tar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  return open_pictures(set.name, find_in_archives(files, options), options);
}

}  // namespace lockstep
