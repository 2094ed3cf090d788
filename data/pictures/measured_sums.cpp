// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One pass over pictures for their mean and standard deviation, and the file that spares the next one: a line of JSON,
/// and the SHA-256 of that line.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "data/pictures/picture_store.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

namespace lockstep {
namespace {

constexpr int kVersionOfSums = 1;
constexpr std::uint64_t kMostBytesOfSums = 4096;
__extension__ using Wide = unsigned __int128;

std::string to_text(const PixelSums& sums, const std::string& key) {
  const std::string line = json_text_in_ascii(nlohmann::ordered_json{
      {"lockstep_sums", kVersionOfSums}, {"of", key}, {"values", sums.values}, {"squares", sums.squares}});
  return fmt::format("{}\n{}\n", line, hex(sha256(std::as_bytes(std::span(line)))));
}

std::vector<std::uint64_t> numbers_of(const nlohmann::json& list) {
  std::vector<std::uint64_t> numbers;
  if (!list.is_array()) return numbers;
  for (const auto& number : list)
    if (number.is_number_unsigned()) numbers.push_back(number.get<std::uint64_t>());
  return numbers;
}

/// That so many bytes a channel may have these sums.
bool is_possible(const PixelSums& sums, std::size_t channels, std::uint64_t pixels) {
  if (sums.values.size() != channels || sums.squares.size() != channels) return false;
  for (std::size_t c = 0; c < channels; ++c) {
    const Wide values = sums.values[c], squares = sums.squares[c];
    if (values > Wide{255} * pixels || squares > 255 * values || values * values > squares * pixels)
      return false;
  }
  return true;
}

/// Nothing: there is no such file, or it is of no use.
std::optional<PixelSums> read_sums(const std::string& file, const std::string& key, std::size_t channels,
                                   std::uint64_t pixels) {
  try {
    if (!Env::posix().exists(file)) return std::nullopt;
    const auto bytes = Env::posix().read_first(file, kMostBytesOfSums);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto json = parse_json_or_discard(text.substr(0, text.find('\n')));
    if (!json.is_object() || json.value("lockstep_sums", nlohmann::json()) != kVersionOfSums ||
        json.value("of", nlohmann::json()) != key)
      return std::nullopt;
    const PixelSums sums{.values = numbers_of(json.value("values", nlohmann::json())),
                         .squares = numbers_of(json.value("squares", nlohmann::json()))};
    if (!is_possible(sums, channels, pixels) || to_text(sums, key) != text) return std::nullopt;
    return sums;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Says how far it is, after two seconds and then every ten.
class Progress {
 public:
  explicit Progress(std::int64_t all) : all_(all) {}

  void at(std::int64_t done) {
    const double seconds = seconds_since(start_);
    if (seconds < next_) return;
    next_ = seconds + 10;
    print_error(
        fmt::format("measuring mean and standard deviation: {} of {} pictures, {:.0f} s to go; data.mean and "
                    "data.std spare it",
                    with_thousands(done), with_thousands(all_),
                    seconds * static_cast<double>(all_ - done) / static_cast<double>(done)));
  }

 private:
  std::int64_t all_;
  Clock::time_point start_ = Clock::now();
  double next_ = 2;
};

PixelSums measure_all(const SampleStore& store, const ImageShape& shape) {
  constexpr std::int64_t kAtOnce = 256;
  const auto channels = static_cast<std::size_t>(shape.channels),
             features = static_cast<std::size_t>(shape.features());
  PixelSums sums{.values = std::vector<std::uint64_t>(channels),
                 .squares = std::vector<std::uint64_t>(channels)};
  std::vector<std::uint8_t> images;
  std::vector<std::int64_t> samples;
  Progress progress(store.size());
  for (std::int64_t first = 0; first < store.size(); first += std::ssize(samples)) {
    samples.resize(static_cast<std::size_t>(std::min(kAtOnce, store.size() - first)));
    std::iota(samples.begin(), samples.end(), first);
    images.resize(samples.size() * features);
    store.read(samples, images);
    add_pixels(images, features / channels, sums);
    progress.at(first + std::ssize(samples));
  }
  return sums;
}

/// Waits while another process has it, which ends when that has measured, or dies. Null: nothing can be written there.
std::unique_ptr<FileClaim> claim(const std::string& file) {
  try {
    for (;;) {
      if (auto claim = Env::posix().claim(file + ".lock")) return claim;
      Env::posix().pause(std::chrono::milliseconds(50));
    }
  } catch (const IoError&) {
    return nullptr;
  }
}

void keep(const PixelSums& sums, const std::string& file, const std::string& key) {
  const std::string text = to_text(sums, key);
  try {
    replace_file(Env::posix(), file, std::as_bytes(std::span(text)));
  } catch (const IoError& error) {
    print_error(
        fmt::format("mean and standard deviation are measured again at the next start: {}; data.mean and "
                    "data.std spare it",
                    error.what()));
  }
}

}  // namespace

PixelSums measured_sums(const SampleStore& store, const ImageShape& shape, const std::filesystem::path& file,
                        const std::string& key) {
  const std::string path = file.string();
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(store.size()) * static_cast<std::uint64_t>(shape.features()) / channels;
  if (auto sums = read_sums(path, key, channels, pixels)) return *std::move(sums);
  const auto only_one = claim(path);
  if (auto sums = read_sums(path, key, channels, pixels)) return *std::move(sums);
  PixelSums sums = measure_all(store, shape);
  keep(sums, path, key);
  return sums;
}

}  // namespace lockstep
