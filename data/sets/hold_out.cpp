// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Chooses the samples of a set that a run trains on and is judged by. The others are taken out where they lie: no
/// index leads to them.
#include "data/sets/hold_out.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/leave_out.hpp"
#include "data/sets/made_sets.hpp"
#include "data/sets/set_loading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr double kLeastShare = 1e-9;  ///< a sample of the largest set
constexpr std::string_view kFiles = "files";

/// The first `count` places of a Fisher-Yates shuffle of [0, samples): a larger count begins with them.
std::vector<std::int32_t> shuffled(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                   DataStream stream) {
  LOCKSTEP_CHECK(count >= 0 && count <= samples);
  std::vector<std::int32_t> order = file_order(samples);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto left = static_cast<std::uint32_t>(samples) - i;
    std::swap(order[i], order[i + SampleDraws(seed, stream, i).below(left)]);
  }
  order.resize(static_cast<std::size_t>(count));
  return order;
}

std::vector<std::int32_t> ascending(std::vector<std::int32_t> places) {
  std::ranges::sort(places);
  return places;
}

/// The first ones of a shuffle of the whole half, but for `others`. Another number of these therefore changes few of
/// those.
std::vector<std::int32_t> chosen_but_for(std::span<const std::int32_t> others, std::int64_t samples,
                                         std::int64_t count, std::uint64_t seed, DataStream stream) {
  auto places = shuffled(samples, count + std::ssize(others), seed, stream);
  std::erase_if(places, [&](std::int32_t place) { return std::ranges::binary_search(others, place); });
  places.resize(static_cast<std::size_t>(count));
  return ascending(std::move(places));
}

/// The samples at `places`, each `size` numbers, in their order.
template <typename T>
AlignedBuffer<T> picked(const AlignedBuffer<T>& all, std::size_t size, std::span<const std::int32_t> places) {
  if (all.size() == 0) return {};
  AlignedBuffer<T> result(places.size() * size);
  T* next = result.data();
  for (const std::int32_t place : places)
    next = std::copy_n(all.data() + static_cast<std::size_t>(place) * size, size, next);
  return result;
}

/// Those samples alone, of a half that is whole.
Dataset pick(const Dataset& half, std::vector<std::int32_t> places) {
  const auto size = static_cast<std::size_t>(half.shape.features());
  Dataset part{.name = half.name, .shape = half.shape, .classes = half.classes};
  part.label_sets = half.label_sets;
  part.images = picked(half.images, size, places);
  part.store = half.store;
  part.features = picked(half.features, size, places);
  part.rows = half.rows;
  part.file_fingerprint = half.file_fingerprint;
  for (const std::int32_t place : places) part.labels.push_back(at(half.labels, place));
  part.places = std::move(places);
  return part;
}

void require_memory_for(const PartSizes& parts, const Dataset& train) {
  if (train.stays_on_disk()) return;
  const auto samples = static_cast<std::size_t>(parts.train + parts.validation + parts.test);
  require_memory(checked_product(samples, row_bytes_of(train)), "choosing samples of " + train.name,
                 "use a machine with more memory");
}

/// A part of what a half has left, or all of it.
std::int64_t subset_of(const char* option, std::int64_t asked, std::int64_t left, std::string_view what,
                       std::int64_t held_out) {
  if (asked <= left) return asked == 0 ? left : asked;
  const std::string others =
      held_out > 0 ? fmt::format(", with {} held out by data.validation", with_thousands(held_out)) : "";
  throw DatasetOptionError(
      option, fmt::format("{} are more than there are: {}{}; ask for {} at most, or leave it out for all",
                          with_thousands(asked), counted(left, what), others, with_thousands(left)));
}

}  // namespace

std::int64_t HoldOut::count_of(std::int64_t all) const {
  if (is_files) return 0;
  const std::int64_t count = share > 0 ? std::llround(share * static_cast<double>(all)) : samples;
  if (is_given() && count == 0)
    throw DatasetOptionError("validation", fmt::format("{} of {} is none; hold out more", to_string(*this),
                                                       counted(all, "training sample")));
  if (count >= all && count > 0)
    throw DatasetOptionError(
        "validation", fmt::format("{} leaves none of {} to train on; hold out {} at most", to_string(*this),
                                  counted(all, "training sample"), with_thousands(all - 1)));
  return count;
}

std::optional<HoldOut> parse_hold_out(std::string_view text) {
  if (text == kFiles) return HoldOut{.is_files = true};
  if (const auto samples = parse_int64(text))
    return *samples >= 0 ? std::optional(HoldOut{.samples = *samples}) : std::nullopt;
  const auto share = parse_double(text);
  return share && *share >= kLeastShare && *share < 1 ? std::optional(HoldOut{.share = *share})
                                                      : std::nullopt;
}

std::string to_string(const HoldOut& hold_out) {
  if (hold_out.is_files) return std::string(kFiles);
  return hold_out.share > 0 ? format_double(hold_out.share) : std::to_string(hold_out.samples);
}

PartSizes part_sizes(const DatasetOptions& options, const PartSizes& files) {
  const bool is_files = options.validation.is_files;
  if (is_files && files.validation == 0)
    throw DatasetOptionError(
        "validation",
        fmt::format("{}: the set has no validation half of its own; make one with lockstep convert "
                    "--validation 10%, or hold training samples out, such as 0.1",
                    kFiles));
  const std::int64_t held_out = options.validation.count_of(files.train), left = files.train - held_out,
                     validation = is_files ? files.validation : held_out;
  if (is_made_in_memory(options.set)) return {left, files.test, validation};
  return {subset_of("train_samples", options.train_samples, left, "training sample", held_out),
          subset_of("test_samples", options.test_samples, files.test, "test sample", 0), validation};
}

std::vector<std::int32_t> held_out_samples(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                           std::span<const std::int32_t> left_out) {
  return chosen_but_for(left_out, samples, count, seed, DataStream::kHoldOut);
}

std::vector<std::int32_t> training_subset(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                          std::span<const std::int32_t> others) {
  return chosen_but_for(others, samples, count, seed, DataStream::kTrainSubset);
}

std::vector<std::int32_t> test_subset(std::int64_t samples, std::int64_t count, std::uint64_t seed) {
  return ascending(shuffled(samples, count, seed, DataStream::kTestSubset));
}

std::vector<SetHalf> split_class(std::int64_t samples, std::size_t label, const std::string& class_name,
                                 const SplitChoice& choice) {
  const auto count_of = [&](const HoldOut& wanted) {
    const std::int64_t by_share = std::llround(wanted.share * static_cast<double>(samples));
    return wanted.share > 0 ? std::max<std::int64_t>(by_share, 1) : wanted.samples;
  };
  const std::int64_t tests = count_of(choice.test), validations = count_of(choice.validation);
  if (tests + validations >= samples)
    throw DataError(fmt::format(
        "class {}: {} of its {} would be for testing{}, and none to train on; add some, or take fewer",
        quoted_text(class_name), tests, counted(samples, "sample"),
        validations > 0 ? fmt::format(" and {} for validation", validations) : ""));
  const auto order = epoch_permutation(samples, choice.seed, static_cast<std::int64_t>(label));
  std::vector<SetHalf> halves(order.size(), SetHalf::kTrain);
  for (std::int64_t i = 0; i < tests + validations; ++i)
    at(halves, at(order, i)) = i < tests ? SetHalf::kTest : SetHalf::kValidation;
  return halves;
}

std::vector<SetHalf> split_classes(std::span<const std::uint32_t> labels,
                                   const std::vector<std::string>& class_names, const SplitChoice& choice) {
  std::vector<std::int64_t> samples(class_names.size());
  for (const std::uint32_t label : labels) ++samples[label];
  std::vector<std::vector<SetHalf>> of_class(samples.size());
  for (std::size_t c = 0; c < samples.size(); ++c)
    if (samples[c] > 0) of_class[c] = split_class(samples[c], c, class_names[c], choice);
  std::vector<std::size_t> next(samples.size());
  std::vector<SetHalf> halves;
  for (const std::uint32_t label : labels) halves.push_back(of_class[label][next[label]++]);
  return halves;
}

void choose_parts(TrainTestData& data, const DatasetOptions& options) {
  Dataset &train = data.train, &test = data.test, &validation = data.validation;
  const std::int64_t all = train.size(), all_tests = test.size();
  auto others = options.leave_out ? left_out_places(*options.leave_out, data) : std::vector<std::int32_t>();
  data.left_out = std::ssize(others);
  const PartSizes sizes = part_sizes(options, {all - data.left_out, all_tests, validation.size()});
  if (sizes.train == all && sizes.test == all_tests) return;
  require_memory_for(sizes, train);
  const auto held_out =
      held_out_samples(all, options.validation.count_of(all - data.left_out), options.seed, others);
  if (sizes.train + std::ssize(held_out) < all || sizes.test < all_tests)
    data.files = {.fingerprints = fingerprints_of(data), .train = all, .test = all_tests};
  if (!held_out.empty()) {
    validation = pick(train, held_out);
    validation.name = options.set + " validation";
  }
  others.insert(others.end(), held_out.begin(), held_out.end());
  if (sizes.train < all)
    train = pick(train, training_subset(all, sizes.train, options.seed, ascending(std::move(others))));
  if (sizes.test < all_tests) test = pick(test, test_subset(all_tests, sizes.test, options.seed));
}

}  // namespace lockstep
