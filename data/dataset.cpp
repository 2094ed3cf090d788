// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the name of a data set to the set.
#include "data/dataset.hpp"

#include "common/error.hpp"
#include "data/image_files.hpp"
#include "data/image_set.hpp"
#include "data/random_set.hpp"
#include "data/synthetic_set.hpp"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {
namespace {

enum class Kind { kFiles, kRandom, kSynthetic };

Kind kind_of(const std::string& set) {
  if (set == "mnist" || set == "fashion-mnist" || set == "kmnist") return Kind::kFiles;
  if (set == "random") return Kind::kRandom;
  if (set == "synthetic") return Kind::kSynthetic;
  throw ConfigError(
      fmt::format("data.set: unknown set '{}'; one of mnist, fashion-mnist, kmnist, random, synthetic", set));
}

void check_samples(const char* key, std::int64_t samples, Kind kind) {
  if (kind == Kind::kFiles && samples != 0)
    throw ConfigError(
        fmt::format("data.{}: {}: only for sets random and synthetic; leave it out", key, samples));
  if (samples < 0 || samples > kMostMadeSamples)
    throw ConfigError(
        fmt::format("data.{}: {} is not in 0..{} (0: the set's default)", key, samples, kMostMadeSamples));
}

void check_options(const DatasetOptions& options, Kind kind) {
  check_samples("train_samples", options.train_samples, kind);
  check_samples("test_samples", options.test_samples, kind);
  if (!std::isfinite(options.mean))
    throw ConfigError(fmt::format("data.mean: {} is not a finite number", options.mean));
  if (!std::isfinite(options.std) || options.std <= 0)
    throw ConfigError(fmt::format("data.std: {} is not a number above 0", options.std));
}

void set_normalisation(Dataset& set, const DatasetOptions& options) {
  set.scale = static_cast<float>(1.0 / (255.0 * options.std));
  set.shift = static_cast<float>(-options.mean / options.std);
}

ImageSetFiles find_files(const DatasetOptions& options) {
  if (!options.directory.empty()) return find_image_set(options.set, {options.directory});
  return find_image_set(options.set, candidate_places(options.set, options.root));
}

TrainTestData make(const DatasetOptions& options, Kind kind) {
  return kind == Kind::kRandom ? make_random_set(options) : make_synthetic_set(options);
}

TrainTestData load(const DatasetOptions& options, Kind kind) {
  TrainTestData data =
      kind == Kind::kFiles ? load_image_set(options.set, find_files(options)) : make(options, kind);
  for (Dataset* half : {&data.train, &data.test}) half->quick = quick_fingerprint_of(*half);
  if (kind == Kind::kRandom) return data;
  set_normalisation(data.train, options);
  set_normalisation(data.test, options);
  return data;
}

}  // namespace

std::string resolve_data_root(const std::string& set, const std::string& root, const std::string& first) {
  if (is_made_in_memory(set)) return "";
  std::vector<std::filesystem::path> places = candidate_places(set, root);
  if (!first.empty()) places.insert(places.begin(), first);
  return find_image_set(set, places).directory.string();
}

bool is_made_in_memory(const std::string& set) {
  return kind_of(set) != Kind::kFiles;
}

TrainTestData load_dataset(const DatasetOptions& options) {
  const Kind kind = kind_of(options.set);
  check_options(options, kind);
  return load(options, kind);
}

}  // namespace lockstep
