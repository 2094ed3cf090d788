// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One pass over pictures for their mean and standard deviation, and the file that spares the next one. It is a line
/// of JSON, and the SHA-256 of that line.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/pictures/picture_store.hpp"
#include "data/sampler.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

namespace lockstep {
namespace {

/// 1: PNGs were changed by gAMA, and JPEGs alone were turned upright.
constexpr int kVersionOfSums = 2;
constexpr std::uint64_t kMostBytesOfSums = 4096;

std::string to_text(const PixelSums& sums, const std::string& key) {
  const std::string line = json_text_in_ascii(nlohmann::ordered_json{
      {"lockstep_sums", kVersionOfSums}, {"of", key}, {"values", sums.values}, {"squares", sums.squares}});
  return fmt::format("{}\n{}\n", line, hex(sha256(std::as_bytes(std::span(line)))));
}

std::vector<std::uint64_t> numbers_of(const nlohmann::json& list) {
  std::vector<std::uint64_t> numbers;
  for (const auto& number : list)
    if (number.is_number_unsigned()) numbers.push_back(number.get<std::uint64_t>());
  return numbers;
}

/// Nothing: there is no such file, or it is of no use.
std::optional<PixelSums> read_sums(const std::string& file, const std::string& key, std::size_t channels,
                                   std::uint64_t pixels) {
  try {
    if (!Env::posix().exists(file)) return std::nullopt;
    const auto bytes = Env::posix().read_first(file, kMostBytesOfSums);
    const std::string_view text = as_text(bytes);
    const auto json = parse_json_or_discard(text.substr(0, text.find('\n')));
    const PixelSums sums{.values = numbers_of(json.at("values")), .squares = numbers_of(json.at("squares"))};
    const bool fits = sums.values.size() == channels && sums.squares.size() == channels;
    if (fits && are_possible(sums, pixels) && to_text(sums, key) == text) return sums;
  } catch (const Error&) {                      // NOLINT(bugprone-empty-catch): it is measured then
  } catch (const nlohmann::json::exception&) {  // NOLINT(bugprone-empty-catch): likewise
  }
  return std::nullopt;
}

/// Says how far it is, after two seconds and then every ten. Waiting processes read it in the claimed file, every
/// second.
class MeasuringProgress {
 public:
  /// @param claim  null: none was to be had
  MeasuringProgress(std::int64_t all, FileClaim* claim) : all_(all), claim_(claim) { write(0); }

  void at(std::int64_t done) {
    const double seconds = seconds_since(start_);
    if (seconds >= next_write_) write(done);
    if (seconds < next_) return;
    next_ = seconds + 10;
    print_error(
        fmt::format("measuring mean and standard deviation: {} of {} pictures, {:.0f} s to go; data.mean and "
                    "data.std spare it",
                    with_thousands(done), with_thousands(all_),
                    seconds * static_cast<double>(all_ - done) / static_cast<double>(done)));
  }

 private:
  void write(std::int64_t done) {
    next_write_ = seconds_since(start_) + 1;
    if (claim_ == nullptr) return;
    try {
      claim_->write(fmt::format("process {} on {} has measured {} of {} pictures\n", ::getpid(), host_name(),
                                with_thousands(done), with_thousands(all_)));
    } catch (const IoError&) {  // others then see no progress, and say so
      claim_ = nullptr;
    }
  }

  std::int64_t all_;
  FileClaim* claim_;
  Clock::time_point start_ = Clock::now();
  double next_ = 2, next_write_ = 0;
};

PixelSums measure_all(const SampleStore& store, const ImageShape& shape, FileClaim* claim) {
  MeasuringProgress progress(store.size(), claim);
  return sums_of_samples(store, shape, file_order(store.size()),
                         [&](std::int64_t done) { progress.at(done); });
}

/// Mode of the lock, which only this user can open. A lock on a file is free to every reader.
void make_directory_of(const std::string& file) {
  const std::string directory = parent_directory(file);
  std::error_code ignored;
  std::filesystem::create_directories(parent_directory(directory), ignored);
  ::mkdir(directory.c_str(), 0700);
}

std::string text_of(const std::string& lock) {
  try {
    const auto bytes = Env::posix().read_first(lock, kMostBytesOfSums);
    return printable(as_text(bytes).substr(0, as_text(bytes).find('\n')));
  } catch (const Error&) {
    return {};
  }
}

/// Waits while another process has it, which ends when that has measured, or dies. Null: nothing can be written there,
/// or that process has got no further for so many seconds.
std::unique_ptr<FileClaim> claim(const std::string& file, double patience) {
  const std::string lock = file + ".lock";
  std::string said;
  auto since = Clock::now();
  for (;;) {
    try {
      if (auto claim = Env::posix().claim(lock)) return claim;
    } catch (const Error&) {
      return nullptr;
    }
    if (std::string now = text_of(lock); now != said) {
      said = std::move(now);
      since = Clock::now();
    }
    if (seconds_since(since) > patience) {
      print_error(fmt::format("{}: held by another process, which gets no further ({}); measuring here, too",
                              lock, said));
      return nullptr;
    }
    Env::posix().pause(std::chrono::milliseconds(50));
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
                        const std::string& key, double patience) {
  const std::string path = file.string();
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(store.size()) * static_cast<std::uint64_t>(shape.features()) / channels;
  if (path.empty()) return measure_all(store, shape, nullptr);
  if (auto sums = read_sums(path, key, channels, pixels)) return *std::move(sums);
  make_directory_of(path);
  const auto only_one = claim(path, patience);
  if (auto sums = read_sums(path, key, channels, pixels)) return *std::move(sums);
  PixelSums sums = measure_all(store, shape, only_one.get());
  keep(sums, path, key);
  return sums;
}

}  // namespace lockstep
