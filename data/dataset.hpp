// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A labelled data set, in memory or on disk, and how to get one by name.
#pragma once

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "data/picture_form.hpp"
#include "data/sample_store.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct AugmentPlan;   // kernels/numerics/augment.hpp
struct SampleMix;     // kernels/mix.hpp
struct LeaveOutList;  // data/sets/leave_out.hpp

/// "3 x 20 x 32 (channels x rows x columns)": shapes of pictures that people read are in this order.
std::string channels_rows_columns(const ImageShape& shape);

// A data set's contents, in a few digits. Ranks compare their data by it, and a run recognises its data.

struct Dataset;
struct TrainTestData;

/// Fingerprint of one half of a set, in hexadecimal.
struct Fingerprint {
  std::string samples;
  std::string labels;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// By common/digest.hpp: for comparisons within a running job.
Fingerprint quick_fingerprint_of(const Dataset& set);

/// For the disk. Images and labels that come from IDX files have the SHA-256 of the uncompressed file
/// (`zcat FILE.gz | sha256sum`), whether it was compressed or not; what is made in memory, or comes from
/// files of another format, has that of the IDX file that would hold it (fp32 features: type 0x0d,
/// little-endian). Images that stay on disk have that of the digests of their blocks: they are not read for it.
Fingerprint fingerprint_of(const Dataset& set);

struct SetFingerprints {
  Fingerprint train, test;
  Fingerprint validation;  ///< only for separate files; empty: the set has none, or they are not used
};

/// Fingerprints of the halves as their files have them. They count samples that are held out and left
/// out.
SetFingerprints fingerprints_of(const TrainTestData& data);

/// The SHA-256 fingerprints of a set, which take 30 ms for MNIST. They are made in the background, or when they are
/// asked for. Ranks that are threads share one.
class LazyFingerprints {
 public:
  explicit LazyFingerprints(std::shared_ptr<const TrainTestData> data) : data_(std::move(data)) {}
  /// Begins, if it has not begun.
  void start();
  /// Waits for them.
  const SetFingerprints& get();

 private:
  std::shared_ptr<const TrainTestData> data_;
  std::mutex mutex_;
  std::shared_future<SetFingerprints> future_;
};

// How bytes become the numbers that a network sees: (byte / 255 - mean) / std, in each channel.

/// One number for all channels, or one for each; empty: not known, or to be measured.
struct Normalisation {
  std::vector<double> mean, std;
  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// Scales for the kernel that normalises: value = byte * scale[c] + shift[c].
struct ChannelScales {
  std::vector<float> scale, shift;  ///< [channels]
};

/// @param by  mean and std have one number or `channels` of them; std is above 0
ChannelScales scales_of(const Normalisation& by, int channels);

/// Mean and standard deviation of each channel, scaled to [0, 1], the same on every machine. The sums are
/// exact integers. A channel whose pixels are all equal has the deviation 1.
/// @param images  [sample][channels][features / channels]
Normalisation measure(std::span<const std::uint8_t> images, std::size_t features, int channels);
/// Measures a set's images. For images on disk the sums are known, except for a chosen part: then the samples in it,
/// or the others, are read. For fp32 features, which are not scaled to [0, 1], the sums are doubles in the order of
/// the samples.
Normalisation measure(const Dataset& set);

/// fp32 features become (value - mean) / std, in double and rounded once: the same bits on every machine.
/// @param features  [sample][channels][features / channels], changed in place
/// @param what      for the message, and the number of the first sample
/// @throws DataError  a result is beyond fp32
void normalise_features(std::span<float> features, const ImageShape& shape, const Normalisation& by,
                        const std::string& what, std::int64_t first_sample = 0);

/// Samples and labels. Images stay uint8 as they are on disk and are normalised on the way into a batch:
/// value = byte * scale + shift, with the numbers of its channel. Sets that are not images hold fp32 features
/// instead, which load_dataset has normalised where they come from files, or which FeatureRows normalises as it reads
/// them. Exactly one of `images`, `store`, `features` and `rows` is there.
struct Dataset {
  std::string name;  ///< "mnist train"
  ImageShape shape;  ///< a sample's
  int classes = 0;
  std::vector<std::int32_t> labels;  ///< [sample], each in [0, classes), or a row of label_sets
  /// Labels of samples that may have several, [rows, classes]. An entry is 1 if the class is a label, else 0. All
  /// parts of a set have the same rows. Empty: a sample has one label.
  std::vector<std::uint8_t> label_sets;
  std::vector<std::int32_t> places;    ///< [sample] in the file of its half, ascending; empty: 0, 1, 2 ...
  AlignedBuffer<std::uint8_t> images;  ///< [sample][channel][row][column], or empty
  std::shared_ptr<const SampleStore> store;     ///< images on disk: all of its file, see place_in_file
  AlignedBuffer<float> features;                ///< [sample][features], or empty
  std::shared_ptr<const SampleStore> rows;      ///< features on disk, as the file has them
  Normalisation of_rows;                        ///< normalises `rows` as they are read
  ChannelScales scales;                         ///< for images
  Fingerprint quick;                            ///< quick_fingerprint_of it, by load_dataset
  std::optional<Fingerprint> file_fingerprint;  ///< its file's, where that says so itself

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  bool stays_on_disk() const { return store != nullptr || rows != nullptr; }
  bool has_images() const { return images.size() > 0 || store != nullptr; }
  bool has_label_sets() const { return !label_sets.empty(); }
  /// The row of a sample. has_label_sets().
  std::span<const std::uint8_t> label_set_of(std::int64_t sample) const {
    const auto row = static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)]);
    return std::span(label_sets)
        .subspan(row * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
  }
  /// Place of the index-th sample in the file of its half.
  std::int64_t place_in_file(std::int64_t index) const {
    return places.empty() ? index : places[static_cast<std::size_t>(index)];
  }
};

/// The part that a run is evaluated on.
enum class EvaluatedPart { kTest, kValidation };

/// The halves into which a set's files are divided. The last one may be missing.
enum class SetHalf : std::uint8_t { kTrain, kTest, kValidation };
inline const char* name_of(SetHalf half) {
  return half == SetHalf::kTrain ? "train" : half == SetHalf::kTest ? "test" : "validation";
}

/// Halves of which samples were left out, as their files have them.
struct WholeHalves {
  SetFingerprints fingerprints;
  std::int64_t train = 0, test = 0;  ///< samples
};

struct TrainTestData {
  Dataset train, test;
  Dataset
      validation;  ///< held out of the training half, which lacks them, or from separate files; may be empty
  bool has_validation_half = false;       ///< there are separate files, used or not
  std::optional<WholeHalves> files;       ///< nothing: they hold what is here, and no more
  std::int64_t left_out = 0;              ///< training samples that DatasetOptions::leave_out names
  std::vector<std::string> class_names;   ///< one for each class, in label order
  PictureFit fit = PictureFit::kSqueeze;  ///< with which convert made its images
  Normalisation normalisation;  ///< for files' samples: given by the job, the set's entry, or measured
  std::string directory;        ///< directory of its files; empty: made in memory
  std::string origin;           ///< origin for the start-up line: a directory, or "made in memory"
  std::string columns;  ///< how a table's rows are read (data/sets/table_columns.hpp); empty: as numbers
  std::vector<std::string> remarks{};  ///< to be said at the start, a sentence each: "left out: ..."

  Dataset& half(SetHalf which) {
    return which == SetHalf::kTrain ? train : which == SetHalf::kTest ? test : validation;
  }
  const Dataset& part(EvaluatedPart which) const { return which == EvaluatedPart::kTest ? test : validation; }
  /// True if `validation` has separate files.
  bool is_validated_by_files() const { return validation.size() > 0 && validation.places.empty(); }
  /// Samples in the files.
  std::int64_t train_in_file() const {
    return files ? files->train : train.size() + std::ssize(validation.places);
  }
  std::int64_t test_in_file() const { return files ? files->test : test.size(); }
};

// Samples that are never trained on: the run is validated with them.

/// Samples to hold out of the training half: a number, or a share of them all. Or none of it, but a separate half.
struct HoldOut {
  std::int64_t samples = 0;
  double share = 0;       ///< above 0 and below 1; 0: `samples` counts
  bool is_files = false;  ///< the set's validation half

  bool is_given() const { return samples > 0 || share > 0 || is_files; }
  /// Number to hold out of so many. A share is rounded to the nearest whole number.
  /// @throws DatasetOptionError  that is none of them, or all
  std::int64_t count_of(std::int64_t all) const;
  friend bool operator==(const HoldOut&, const HoldOut&) = default;
};

/// "5000", "0.1" or "files". Nothing: it is none of these: a whole number from 0 on, a share from 1e-9 on, below 1.
std::optional<HoldOut> parse_hold_out(std::string_view text);
/// parse_hold_out takes it back.
std::string to_string(const HoldOut& hold_out);

/// The places, ascending, of those that are held out of so many. A seed gives the same ones on every machine, and
/// among those of any larger count. At most `samples`, which fits 31 bits.
/// @param left_out  ascending: these never are
std::vector<std::int32_t> held_out_samples(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                           std::span<const std::int32_t> left_out = {});
/// Chooses the places that are trained on, where not all are: none of `others`, which is ascending.
std::vector<std::int32_t> training_subset(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                          std::span<const std::int32_t> others);
/// Chooses the places of the test half.
std::vector<std::int32_t> test_subset(std::int64_t samples, std::int64_t count, std::uint64_t seed);

/// Chooses samples of a new set that are not trained on, where it does not say so itself. It takes some of each
/// class, at least one for a share. None are for validation unless that is given.
struct SplitChoice {
  HoldOut test = {.share = 0.2}, validation = {};
  std::uint64_t seed = 1234;
  bool is_test_given = false;      ///< the user asked for it
  bool leaves_validation = false;  ///< separate files for validation are not looked at
};

/// The half of each of a class's samples: by the seed, the class and how many there are. The choice for validation does
/// not change which are for testing.
/// @throws DataError  none would be left to train on
std::vector<SetHalf> split_class(std::int64_t samples, std::size_t label, const std::string& class_name,
                                 const SplitChoice& choice);

/// Indices are 32-bit, and one sample of `synthetic` is 784 bytes: a limit that catches a slip of the finger.
inline constexpr std::int64_t kMostMadeSamples = 10'000'000;

/// The `data:` section of a job file as far as loading is concerned.
struct DatasetOptions {
  std::string set = "mnist";   ///< a name in data/sets/catalogue.txt
  std::string root = "auto";   ///< see resolve_data_root
  std::string directory = {};  ///< that holds the files themselves: its answer. Empty: `root` is asked
  /// Mean and deviation of the training images scaled to [0, 1]. Empty: those of the set's entry, or
  /// measured.
  std::vector<double> mean = {}, std = {};
  std::uint64_t seed = 1234;  ///< for sets made in memory, and for the choice of samples
  /// Samples of a set made in memory; 0: the set's default. In other sets so many of those that are not held out are
  /// trained on, or make the test half; 0: all.
  std::int64_t train_samples = 0, test_samples = 0;
  HoldOut validation = {};
  /// Training samples that are neither trained on nor validated on; null: none.
  std::shared_ptr<const LeaveOutList> leave_out = nullptr;
  bool in_memory = false;     ///< the images that could stay on disk are read all at once, too
  PictureForm pictures = {};  ///< for sets of pictures: what they become
  std::string columns = {};   ///< names that give a table's columns their order; empty: the table's order
  std::string label = "cls";  ///< for WebDataset's archives: labels are in .cls, or under this key in .json
  std::string cache = {};  ///< keeps what was measured of pictures, as user_cache(); empty: nothing is kept
};

/// Samples that a run takes of the two halves of its set.
struct PartSizes {
  std::int64_t train = 0, test = 0, validation = 0;
};

/// Sizes of the halves as in files or as made, less the samples left out.
/// @throws DatasetOptionError  more than there are, none left to train on, or no validation half where one is asked for
PartSizes part_sizes(const DatasetOptions& options, const PartSizes& files);

/// Moves samples from `train` to `validation`, and leaves others out, as the options say.
/// @throws DatasetOptionError  as part_sizes; MemoryError
void choose_parts(TrainTestData& data, const DatasetOptions& options);

/// A wrong member of DatasetOptions, named as a job's section names it; what() says "mean: 2 numbers ...".
class DatasetOptionError : public ConfigError {
 public:
  DatasetOptionError(std::string option, const std::string& cause)
      : ConfigError(option + ": " + cause), option_(std::move(option)), cause_(cause) {}
  const std::string& option() const noexcept { return option_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string option_, cause_;
};

/// The directory that holds the files of a set: `first`, if it is not empty and does. Otherwise the first of
/// candidate_places (data/sets/set_formats.hpp) that has them all. Empty for a set that is made in memory.
///
/// This and user_cache() are the only parts of loading that read the environment. A caller that loads in a thread while
/// another thread may set variables (MPI_Init does) calls it first and passes its answer on as
/// DatasetOptions::directory.
/// @throws MissingDataError, ConfigError  as load_dataset
std::string resolve_data_root(const std::string& set, const std::string& root, const std::string& first = "");
/// ${XDG_CACHE_HOME:-~/.cache}/lockstep: the only place of what is kept for later starts. Nothing is written into
/// directories of data. Empty: this user has none.
std::string user_cache();

/// True if a set's samples are made rather than read. @throws ConfigError  unknown set
bool is_made_in_memory(const std::string& set);
/// The names of those sets.
std::vector<std::string_view> made_sets();
/// True if a set's samples are pictures that are decoded, as DatasetOptions::pictures says. @throws ConfigError
bool has_pictures(const std::string& set);

/// True if load_dataset leaves nothing of such a set on disk. For a set in shards it reads the index.
/// @throws as load_dataset
bool loads_into_memory(const DatasetOptions& options);

/// Loads or makes a data set. May run on a separate thread; for `root: auto` see resolve_data_root.
/// @throws MissingDataError  names every place looked at and the command that fetches the set
/// @throws DataError         names file, offset and what is wrong: truncated, oversized header, gzip damage,
///                           labels out of range, image and label counts that differ
/// @throws ConfigError       unknown set, numbers out of range, more of them than the images have channels, more
///                           samples than there are, people's own data without a directory, nothing left to train on
TrainTestData load_dataset(const DatasetOptions& options);

// From data set indices to the input of a network: normalised, batch innermost.

/// The numbers of some samples as the set has them. Images are bytes; features are fp32, normalised, one after the
/// other.
/// @param samples  each in [0, set.size())
/// @param to       overwritten; all of it
/// @throws DataError, IoError  as SampleStore::read
void read_samples(const Dataset& set, std::span<const std::int32_t> samples, std::span<std::uint8_t> to);

/// The images of some samples, as bytes: in the set's memory, or read into separate memory.
class ImageRows {
 public:
  /// Borrows the set, which has images and must outlive the rows.
  /// @param samples  each in [0, set.size())
  /// @throws DataError, IoError  as SampleStore::read
  ImageRows(const Dataset& set, std::span<const std::int32_t> samples);

  /// [sample] → [channel][row][column]
  const std::uint8_t* const* data() const { return rows_.data(); }
  std::span<const std::uint8_t> operator[](std::size_t i) const { return {rows_[i], size_}; }

 private:
  std::size_t size_;
  std::vector<const std::uint8_t*> rows_;
  std::unique_ptr<std::uint8_t[]> read_;
};

/// The fp32 features of some samples, normalised: in the set's memory, or read into separate memory.
class FeatureRows {
 public:
  /// Borrows set and samples, which must outlive the rows. The set has features.
  /// @throws DataError, IoError  as SampleStore::read and normalise_features
  FeatureRows(const Dataset& set, std::span<const std::int32_t> samples);
  FeatureRows(const FeatureRows&) = delete;
  FeatureRows& operator=(const FeatureRows&) = delete;

  /// Rows of [features], of which indices() are those of the samples.
  const float* data() const { return data_; }
  const std::int32_t* indices() const { return indices_.data(); }
  /// All of them in the order of the samples, of a set on disk.
  std::span<const float> read() const { return read_; }
  std::span<const float> operator[](std::size_t i) const {
    return {data_ + static_cast<std::size_t>(indices_[i]) * size_, size_};
  }

 private:
  std::size_t size_;
  const float* data_;
  std::span<const std::int32_t> indices_;
  std::vector<float> read_;
  std::vector<std::int32_t> order_;
};

/// Rows of a set with `rows`, as the file has them. @param to  [samples][features], overwritten
void read_rows(const Dataset& set, std::span<const std::int32_t> samples, std::span<float> to);

/// Gathers samples of a data set straight into the layout that the kernels read. Holds no state: one loader
/// serves all threads of a rank.
class BatchLoader {
 public:
  /// Borrows the set and the plan, which must outlive the loader.
  /// @param augment  augmentation of images on their way; null: none
  explicit BatchLoader(const Dataset& dataset, const AugmentPlan* augment = nullptr)
      : dataset_(dataset), augment_(augment) {}

  /// Column n of x becomes sample indices[n]. Columns beyond them become 0. labels[n] becomes its label; for a mixed
  /// sample that of the larger part.
  ///
  /// @param epoch          the epoch that the batch is trained on in: keys what augmentation draws
  /// @param indices        each in [0, dataset.size()), not more than batch_columns
  /// @param batch_columns  a multiple of cpu::kLanes
  /// @param x              [features, batch_columns], overwritten
  /// @param labels         [indices.size()], overwritten
  /// @param mixes          one for each sample; empty: none is mixed
  void load(std::span<const std::int32_t> indices, int batch_columns, float* x, std::int32_t* labels,
            std::int64_t epoch = 0, std::span<const SampleMix> mixes = {}) const;

  /// Asks the processor to have these samples in its cache soon, or the system to have them in memory. Returns at once.
  /// Worth it while computing on the batch before: random samples come from main memory or disk, which a gather would
  /// wait for.
  void prefetch(std::span<const std::int32_t> indices) const;

 private:
  const Dataset& dataset_;
  const AugmentPlan* augment_;
};

}  // namespace lockstep
