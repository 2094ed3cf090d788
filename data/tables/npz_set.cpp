// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Turns Keras' and MedMNIST's archives into shards. Reads the labels of all halves first, and then the samples.
#include "data/tables/npz_set.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/sets/names.hpp"
#include "data/sets/shards.hpp"
#include "data/tables/readers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// The arrays of a half.
struct ArrayPair {
  SetHalf half;
  const char *samples, *labels;
};

constexpr std::array<std::array<ArrayPair, 3>, 2> kUsualArrays = {{
    {{{SetHalf::kTrain, "x_train", "y_train"},
      {SetHalf::kTest, "x_test", "y_test"},
      {SetHalf::kValidation, "x_val", "y_val"}}},
    {{{SetHalf::kTrain, "train_images", "train_labels"},
      {SetHalf::kTest, "test_images", "test_labels"},
      {SetHalf::kValidation, "val_images", "val_labels"}}},
}};

/// Those that the archive has: train and test at least.
std::vector<ArrayPair> arrays_of_halves(const NpzArchive& archive, const std::string& file) {
  const auto& usual =
      *std::ranges::find_if(kUsualArrays, [&](const auto& arrays) { return archive.has(arrays[0].samples); });
  std::vector<ArrayPair> halves;
  std::vector<std::string> missing;
  for (const ArrayPair& pair : usual) {
    const bool has_samples = archive.has(pair.samples), has_labels = archive.has(pair.labels);
    if (pair.half == SetHalf::kValidation && !has_samples && !has_labels) continue;
    if (!has_samples) missing.emplace_back(pair.samples);
    if (!has_labels) missing.emplace_back(pair.labels);
    halves.push_back(pair);
  }
  if (missing.empty()) return halves;
  throw DataError(
      fmt::format("{}: has {}, and no {}; save {} too with numpy.savez, or all samples as x and their "
                  "labels as y",
                  file, usual[0].samples, fmt::join(missing, ", "), missing.size() == 1 ? "it" : "them"));
}

[[noreturn]] void refuse_array(const NpyRows& rows, const std::string& cause) {
  throw DataError(fmt::format("{}: {}; save the array again with numpy.savez", rows.source().name(), cause));
}

// Shapes.

struct SampleForm {
  ImageShape shape;
  bool is_image = false;
  bool has_channels_last = false;
  friend bool operator==(const SampleForm&, const SampleForm&) = default;
};

SampleForm form_of(const NpyRows& rows) {
  const NpyHeader& header = rows.header();
  if (header.is_text()) refuse_array(rows, "holds text, and no samples");
  const std::size_t dims = header.dims.size();
  SampleForm form{.shape = header.row_shape(),
                  .is_image = dims > 2 && header.kind == 'u' && header.item == 1};
  if (dims < 4) return form;
  constexpr int kMostChannels = 4;
  const auto [first, second, third] = form.shape;
  form.has_channels_last = third <= kMostChannels;
  if (!form.has_channels_last && first > kMostChannels)
    refuse_array(rows,
                 fmt::format("samples of {} x {} x {}, and neither the first nor the last number is one of "
                             "channels, 1 to 4",
                             first, second, third));
  if (form.has_channels_last) form.shape = {third, first, second};
  return form;
}

std::string order_text(const NpyRows& train, const SampleForm& form) {
  if (train.header().dims.size() < 4) return "";
  return fmt::format("{} is taken as [sample]{}", train.source().name(),
                     form.has_channels_last ? "[row][column][channel], which becomes [channel][row][column]"
                                            : "[channel][row][column]");
}

/// That of all halves, and how many samples each has.
std::pair<SampleForm, std::vector<std::int64_t>> read_forms(const NpzArchive& archive,
                                                            const std::vector<ArrayPair>& halves) {
  SampleForm form;
  std::vector<std::int64_t> sizes;
  for (const ArrayPair& pair : halves) {
    const NpyRows rows(archive.open(pair.samples));
    const SampleForm found = form_of(rows);
    if (sizes.empty()) form = found;
    if (found != form)
      refuse_array(rows, fmt::format("its samples are of another shape, order or type than those in {}",
                                     halves[0].samples));
    sizes.push_back(rows.size());
  }
  return {form, sizes};
}

// Labels.

struct HalfLabels {
  std::vector<std::uint32_t> labels;  ///< all samples', one after another
  std::vector<std::uint64_t> ends;    ///< [sample] among them

  std::span<const std::uint32_t> of(std::size_t sample) const {
    const std::uint64_t begin = sample == 0 ? 0 : ends[sample - 1];
    return std::span(labels).subspan(begin, ends[sample] - begin);
  }
};

struct SetLabels {
  std::vector<std::string> names;
  std::vector<HalfLabels> halves;
  bool are_sets = false;
};

/// Reads rows of ones and zeros. @returns true if each sample of the half has one label
bool read_label_rows(NpyRows& rows, HalfLabels& found) {
  std::vector<float> row(rows.header().row_elements());
  bool is_one_each = true;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    rows.next(row);
    const std::size_t before = found.labels.size();
    for (std::uint32_t c = 0; c < row.size(); ++c) {
      if (row[c] != 0 && row[c] != 1)
        refuse_array(rows, fmt::format("row {} has {}, and labels of {} columns are ones and zeros", i,
                                       row[c], row.size()));
      if (row[c] == 1) found.labels.push_back(c);
    }
    found.ends.push_back(found.labels.size());
    is_one_each = is_one_each && found.labels.size() == before + 1;
  }
  return is_one_each;
}

void read_single_labels(NpyRows& rows, HalfLabels& found, ClassNumbers& classes) {
  std::string label;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const char* trouble =
        rows.next_label(label) ? trouble_with_class_name(label) : "is neither a whole number nor a name";
    if (trouble != nullptr) refuse_array(rows, fmt::format("label {} {}", i, trouble));
    found.labels.push_back(classes.number_of(label));
    found.ends.push_back(found.labels.size());
  }
  if (std::ssize(classes.names) > kMostShardClasses)
    refuse_array(rows, fmt::format("labels of more than {} classes", kMostShardClasses));
}

SetLabels read_labels(const NpzArchive& archive, const std::vector<ArrayPair>& halves,
                      const std::vector<std::int64_t>& samples) {
  SetLabels found;
  ClassNumbers classes;
  std::uint64_t columns = 0;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    NpyRows rows(archive.open(halves[i].labels));
    const std::uint64_t own_columns = rows.header().row_elements();
    if (i == 0) columns = own_columns;
    if (rows.size() != samples[i])
      refuse_array(rows,
                   fmt::format("{} for {}", counted(rows.size(), "row"), counted(samples[i], "sample")));
    if (own_columns != columns)
      refuse_array(rows, fmt::format("{} of labels, and {} has {}", counted(own_columns, "column"),
                                     halves[0].labels, columns));
    HalfLabels& half = found.halves.emplace_back();
    if (columns > 1)
      found.are_sets = !read_label_rows(rows, half) || found.are_sets;
    else
      read_single_labels(rows, half, classes);
  }
  if (columns > 1) {
    found.names = numbered_classes(static_cast<int>(columns));
    return found;
  }
  const auto place = classes.sort_names();
  found.names = std::move(classes.names);
  for (HalfLabels& half : found.halves)
    for (std::uint32_t& label : half.labels) label = place[label];
  return found;
}

// Samples.

void write_half(NpyRows rows, SetHalf half, const SampleForm& form, const HalfLabels& labels,
                ShardWriter& writer) {
  const ImageShape& shape = form.shape;
  std::vector<float> row(static_cast<std::size_t>(shape.features()));
  std::vector<std::uint8_t> image(row.size());
  for (std::size_t i = 0; i < labels.ends.size(); ++i) {
    if (const std::int64_t bad = rows.next(row); bad >= 0)
      refuse_array(rows,
                   fmt::format("value {} of sample {} is {}, no number that fp32 has", bad, i, at(row, bad)));
    if (form.has_channels_last)
      separate_channels(std::span(row), row.size() / static_cast<std::size_t>(shape.channels),
                        shape.channels);
    if (form.is_image) {
      std::ranges::transform(row, image.begin(),
                             [](float value) { return static_cast<std::uint8_t>(value); });
      writer.add(half, image, labels.of(i));
    } else {
      writer.add(half, {reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(float)},
                 labels.of(i));
    }
  }
}

/// [class] samples with it; of a half that is not there, none.
std::vector<std::int64_t> samples_of_half(const std::vector<ArrayPair>& halves, SetHalf half,
                                          const SetLabels& labels) {
  std::vector<std::int64_t> counts(labels.names.size());
  for (std::size_t i = 0; i < halves.size(); ++i)
    if (halves[i].half == half)
      for (const std::uint32_t label : labels.halves[i].labels) ++counts[label];
  return counts;
}

}  // namespace

bool is_npz_set(const std::string& file) {
  if (in_small_letters(std::filesystem::path(file).extension().string()) != ".npz") return false;
  const NpzArchive archive(file);
  const auto has = [&](std::string_view name) { return archive.has(name); };
  constexpr std::string_view kOfTables[] = {"x", "X", "features", "data"};
  return std::ranges::none_of(kOfTables, has) &&
         std::ranges::any_of(kUsualArrays, [&](const auto& arrays) { return has(arrays[0].samples); });
}

NpzSetConversion convert_npz_set(Env& env, const std::string& from, const std::string& to, bool replace) {
  const NpzArchive archive(from);
  const auto halves = arrays_of_halves(archive, from);
  NpzSetConversion done;
  const auto [form, sizes] = read_forms(archive, halves);
  done.order = order_text(NpyRows(archive.open(halves[0].samples)), form);
  const SetLabels labels = read_labels(archive, halves, sizes);
  if (labels.names.size() < 2)
    throw DataError(fmt::format("{}: all labels are {}, and one class cannot be distinguished from others",
                                from, quoted_text(labels.names.front())));
  done.is_fp32 = !form.is_image;
  done.has_label_sets = labels.are_sets;
  done.samples.shape = form.shape;
  done.samples.class_names = labels.names;
  ShardWriter writer(env, to, form.shape, labels.names,
                     {.replace = replace, .is_fp32 = done.is_fp32, .has_label_sets = labels.are_sets});
  for (std::size_t i = 0; i < halves.size(); ++i)
    write_half(NpyRows(archive.open(halves[i].samples)), halves[i].half, form, labels.halves[i], writer);
  writer.publish();
  const ShardIndex& index = writer.index();
  done.sizes = {index.train.samples, index.test.samples, index.validation.samples};
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest, SetHalf::kValidation})
    select_half(done.samples, half) = samples_of_half(halves, half, labels);
  return done;
}

}  // namespace lockstep
