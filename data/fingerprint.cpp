// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SHA-256 of the IDX file that a set would be, in whatever order memory has it; LazyFingerprints, beside other work.
#include "data/fingerprint.hpp"

#include "common/quick_digest.hpp"
#include "common/sha256.hpp"
#include "common/threads.hpp"
#include "data/channel_order.hpp"
#include "data/dataset.hpp"
#include "data/idx_writer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {
namespace {

/// Images or features, whichever the set has.
std::span<const std::byte> samples_of(const Dataset& set) {
  return set.images.size() > 0 ? std::as_bytes(set.images.span()) : std::as_bytes(set.features.span());
}

std::string sha256_of_file(std::uint8_t type, std::span<const std::int64_t> dims,
                           std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(idx_file_head(type, dims));
  hash.update(data);
  return hex(hash.finish());
}

/// Of the IDX file that holds images with channels: pixel by pixel.
std::string sha256_of_interleaved(const Dataset& set) {
  const ImageShape& shape = set.shape;
  const auto features = static_cast<std::size_t>(shape.features());
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::array<std::int64_t, 4> dims{set.size(), shape.height, shape.width, shape.channels};
  Sha256 hash;
  hash.update(idx_file_head(kIdxUint8, dims));
  std::vector<std::uint8_t> image(features);
  for (std::size_t at = 0; at < set.images.size(); at += features) {
    interleave_channels(set.images.span().subspan(at, features), features / channels, shape.channels, image);
    hash.update(std::as_bytes(std::span(image)));
  }
  return hex(hash.finish());
}

std::string sha256_of_samples(const Dataset& set) {
  const std::array<std::int64_t, 3> images{set.size(), set.shape.height, set.shape.width};
  const std::array<std::int64_t, 2> features{set.size(), set.shape.features()};
  if (set.images.size() == 0) return sha256_of_file(kIdxFp32, features, samples_of(set));
  return set.shape.channels == 1 ? sha256_of_file(kIdxUint8, images, samples_of(set))
                                 : sha256_of_interleaved(set);
}

}  // namespace

Fingerprint quick_fingerprint_of(const Dataset& set) {
  return {.samples = quick_digest(samples_of(set)),
          .labels = quick_digest(std::as_bytes(std::span(set.labels)))};
}

Fingerprint fingerprint_of(const Dataset& set) {
  const std::vector<std::uint8_t> labels(set.labels.begin(), set.labels.end());
  const std::array<std::int64_t, 1> count{set.size()};
  return {.samples = sha256_of_samples(set),
          .labels = sha256_of_file(kIdxUint8, count, std::as_bytes(std::span(labels)))};
}

void LazyFingerprints::start() {
  const std::lock_guard lock(mutex_);
  if (future_.valid()) return;
  future_ = start_async([data = data_] {
              auto test = start_async([&] { return fingerprint_of(data->test); });
              Fingerprint train = fingerprint_of(data->train);
              return SetFingerprints{.train = std::move(train), .test = test.get()};
            }).share();
}

const SetFingerprints& LazyFingerprints::get() {
  start();
  return future_.get();
}

}  // namespace lockstep
