// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/fingerprint.hpp"

#include "common/quick_digest.hpp"
#include "common/sha256.hpp"
#include "data/dataset.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {
namespace {

constexpr std::uint8_t kUint8 = 0x08, kFp32 = 0x0d;

/// Images or features, whichever the set has.
std::span<const std::byte> samples_of(const Dataset& set) {
  return set.images.size() > 0 ? std::as_bytes(set.images.span()) : std::as_bytes(set.features.span());
}

/// The first bytes of an IDX file: two zeros, element type, number of dimensions, sizes big-endian.
std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims) {
  std::vector<std::byte> head = {std::byte{0}, std::byte{0}, std::byte{type},
                                 static_cast<std::byte>(dims.size())};
  for (const std::int64_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<std::byte>(dim >> shift));
  }
  return head;
}

std::string sha256_of_file(std::uint8_t type, std::span<const std::int64_t> dims,
                           std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(idx_file_head(type, dims));
  hash.update(data);
  return hex(hash.finish());
}

}  // namespace

Fingerprint quick_fingerprint_of(const Dataset& set) {
  return {.samples = quick_digest(samples_of(set)),
          .labels = quick_digest(std::as_bytes(std::span(set.labels)))};
}

Fingerprint fingerprint_of(const Dataset& set) {
  const std::vector<std::uint8_t> labels(set.labels.begin(), set.labels.end());
  const std::array<std::int64_t, 1> count{set.size()};
  const std::array<std::int64_t, 3> images{set.size(), set.shape.height, set.shape.width};
  const std::array<std::int64_t, 2> features{set.size(), set.shape.features()};
  return {.samples = set.images.size() > 0 ? sha256_of_file(kUint8, images, samples_of(set))
                                           : sha256_of_file(kFp32, features, samples_of(set)),
          .labels = sha256_of_file(kUint8, count, std::as_bytes(std::span(labels)))};
}

void LazyFingerprints::start() {
  if (future_.valid()) return;
  future_ = std::async(std::launch::async, [data = data_] {
              auto test = std::async(std::launch::async, [&] { return fingerprint_of(data->test); });
              Fingerprint train = fingerprint_of(data->train);
              return SetFingerprints{.train = std::move(train), .test = test.get()};
            }).share();
}

const SetFingerprints& LazyFingerprints::get() {
  start();
  return future_.get();
}

}  // namespace lockstep
