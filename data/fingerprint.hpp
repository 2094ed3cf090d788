// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a data set holds, in a few digits: by this ranks compare their data, and a run knows its own again.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <string>

namespace lockstep {

struct Dataset;
struct TrainTestData;

/// Of one half of a set, in hexadecimal.
struct Fingerprint {
  std::string samples;
  std::string labels;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// By common/quick_digest.hpp: for comparisons within a running job.
Fingerprint quick_fingerprint_of(const Dataset& set);

/// For the disk. Images and labels that come from IDX files have the SHA-256 of the uncompressed file
/// (`zcat FILE.gz | sha256sum`), whether it was compressed or not; what is made in memory, or comes from
/// files of another format, has that of the IDX file that would hold it (fp32 features: type 0x0d,
/// little-endian).
Fingerprint fingerprint_of(const Dataset& set);

struct SetFingerprints {
  Fingerprint train, test;
};

/// The SHA-256 fingerprints of a set, which take 30 ms for MNIST: made in the background, or when they are
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
