// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A data set's contents in a few digits: ranks compare their data by them, and a run recognises its data.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace lockstep {

struct Dataset;  // data/dataset.hpp
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

}  // namespace lockstep
