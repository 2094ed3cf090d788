// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scales from mean and standard deviation, and both measured in whole numbers over all pixels.
#include "data/normalisation.hpp"

#include <cmath>
#include <cstddef>

namespace lockstep {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr double kWhite = 255;

struct Sums {
  std::uint64_t values = 0, squares = 0;
};

Sums sums_of(std::span<const std::uint8_t> pixels) {
  Sums sums;
  for (const std::uint8_t pixel : pixels) {
    sums.values += pixel;
    sums.squares += std::uint64_t{pixel} * pixel;
  }
  return sums;
}

double number_for(const std::vector<double>& numbers, std::size_t channel) {
  return numbers.size() == 1 ? numbers.front() : numbers[channel];
}

}  // namespace

ChannelScales scales_of(const Normalisation& by, int channels) {
  ChannelScales scales;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const double mean = number_for(by.mean, c), std = number_for(by.std, c);
    scales.scale.push_back(static_cast<float>(1.0 / (kWhite * std)));
    scales.shift.push_back(static_cast<float>(-mean / std));
  }
  return scales;
}

Normalisation measure(std::span<const std::uint8_t> images, std::size_t features, int channels) {
  const auto count = static_cast<std::size_t>(channels), plane = features / count;
  std::vector<Sums> sums(count);
  for (std::size_t at = 0; at < images.size(); at += plane) {
    const Sums more = sums_of(images.subspan(at, plane));
    Sums& all = sums[at / plane % count];
    all.values += more.values;
    all.squares += more.squares;
  }
  const std::uint64_t n = images.size() / count;
  Normalisation found;
  for (const Sums& all : sums) {
    const Wide spread = Wide{n} * all.squares - Wide{all.values} * all.values;  // n^2 times the variance
    const double std = std::sqrt(static_cast<double>(spread)) / static_cast<double>(n) / kWhite;
    found.mean.push_back(static_cast<double>(all.values) / static_cast<double>(n) / kWhite);
    found.std.push_back(std > 0 ? std : 1);
  }
  return found;
}

}  // namespace lockstep
