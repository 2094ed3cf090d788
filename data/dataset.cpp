// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Describes a set's samples, and makes their fingerprints.
#include "data/dataset.hpp"

#include "common/digest.hpp"
#include "common/machine.hpp"
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/set_fingerprints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep {

std::string channels_rows_columns(const ImageShape& shape) {
  return fmt::format("{} x {} x {} (channels x rows x columns)", shape.channels, shape.height, shape.width);
}

// SHA-256 of the IDX file that a set would be, from any order in memory; LazyFingerprints, beside other work.

namespace {

/// A half as its file has it: what was held out of it is in its place again.
struct WholeHalf {
  const Dataset& kept;
  const Dataset* held_out = nullptr;          ///< null: nothing was
  std::span<const std::int32_t> places = {};  ///< places of the held-out samples, ascending

  std::int64_t size() const { return kept.size() + std::ssize(places); }
};

/// @param take  is called with a set, a first sample in it and how many follow one another, in the order of the file
template <typename Take>
void in_file_order(const WholeHalf& half, const Take& take) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < half.places.size(); ++i) {
    const std::size_t before = static_cast<std::size_t>(half.places[i]) - i;  // those that were kept
    take(half.kept, next, before - next);
    take(*half.held_out, i, 1);
    next = before;
  }
  take(half.kept, next, static_cast<std::size_t>(half.kept.size()) - next);
}

/// Hashes the IDX file; images with channels lie there pixel by pixel.
std::string sha256_of_samples(const WholeHalf& half) {
  const ImageShape& shape = half.kept.shape;
  const auto features = static_cast<std::size_t>(shape.features());
  const bool has_images = half.kept.images.size() > 0;
  std::vector<std::int64_t> dims = {half.size(), shape.features()};
  if (has_images) dims = {half.size(), shape.height, shape.width};
  if (has_images && shape.channels > 1) dims.push_back(shape.channels);
  Sha256 hash;
  hash.update(idx_file_head(has_images ? kIdxUint8 : kIdxFp32, dims));
  std::vector<std::uint8_t> image(features);
  in_file_order(half, [&](const Dataset& set, std::size_t first, std::size_t count) {
    const auto bytes = set.samples_in_memory();
    const std::size_t each = bytes.size() / static_cast<std::size_t>(std::max<std::int64_t>(set.size(), 1));
    if (!has_images || shape.channels == 1) return hash.update(bytes.subspan(first * each, count * each));
    for (std::size_t i = first; i < first + count; ++i) {
      interleave_channels(set.images.span().subspan(i * features, features),
                          features / static_cast<std::size_t>(shape.channels), shape.channels, image);
      hash.update(std::as_bytes(std::span(image)));
    }
  });
  return hex(hash.finish());
}

std::string sha256_of_labels(const WholeHalf& half) {
  std::vector<std::uint8_t> labels;
  in_file_order(half, [&](const Dataset& set, std::size_t first, std::size_t count) {
    if (set.has_label_sets()) {
      for (std::size_t i = first; i < first + count; ++i) {
        const auto row = set.label_set_of(static_cast<std::int64_t>(i));
        labels.insert(labels.end(), row.begin(), row.end());
      }
      return;
    }
    const auto begin = set.labels.begin() + static_cast<std::ptrdiff_t>(first);
    labels.insert(labels.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  });
  std::vector<std::int64_t> dims = {half.size()};
  if (half.kept.has_label_sets()) dims.push_back(half.kept.classes);
  Sha256 hash;
  hash.update(idx_file_head(kIdxUint8, dims));
  hash.update(std::as_bytes(std::span(labels)));
  return hex(hash.finish());
}

Fingerprint fingerprint_of(const WholeHalf& half) {
  if (half.kept.file_fingerprint) return *half.kept.file_fingerprint;
  return {.samples = sha256_of_samples(half), .labels = sha256_of_labels(half)};
}

}  // namespace

Fingerprint quick_fingerprint_of(const Dataset& set) {
  std::string labels = quick_digest(std::as_bytes(std::span(set.labels)));
  if (set.has_label_sets()) labels += quick_digest(std::as_bytes(std::span(set.label_sets)));
  std::string samples = set.file_fingerprint ? quick_digest(std::as_bytes(std::span(set.places))) +
                                                   set.file_fingerprint->samples
                                             : quick_digest(set.samples_in_memory());
  return {.samples = std::move(samples), .labels = std::move(labels)};
}

Fingerprint fingerprint_of(const Dataset& set) {
  return fingerprint_of(WholeHalf{.kept = set});
}

SetFingerprints fingerprints_of(const TrainTestData& data) {
  if (data.files) return data.files->fingerprints;
  auto test = start_async([&] { return fingerprint_of(data.test); });
  Fingerprint train = fingerprint_of(
      WholeHalf{.kept = data.train, .held_out = &data.validation, .places = data.validation.places});
  return {.train = std::move(train),
          .test = test.get(),
          .validation = data.is_validated_by_files() ? fingerprint_of(data.validation) : Fingerprint()};
}

void LazyFingerprints::start() {
  const std::lock_guard lock(mutex_);
  if (future_.valid()) return;
  future_ = start_async([data = data_] { return fingerprints_of(*data); }).share();
}

const SetFingerprints& LazyFingerprints::get() {
  start();
  return future_.get();
}

}  // namespace lockstep
