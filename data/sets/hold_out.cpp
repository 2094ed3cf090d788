// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples are taken out of the training half where it lies: what is trained on has no index that leads to them.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/dataset.hpp"
#include "data/sets/made_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr double kLeastShare = 1e-9;  ///< a sample of the largest set

/// "mnist validation"
std::string name_of_validation(std::string train) {
  constexpr std::string_view kTrain = " train";
  if (train.ends_with(kTrain)) train.resize(train.size() - kTrain.size());
  return train + " validation";
}

template <typename T>
std::uint64_t bytes_of(const AlignedBuffer<T>& samples, std::size_t each, std::size_t count) {
  return samples.size() == 0 ? 0 : checked_product(each, count, sizeof(T));
}

/// The samples at `places`, and the others, each `size` numbers, in their order.
template <typename T>
void divide(AlignedBuffer<T>& all, std::size_t size, std::span<const std::int32_t> places,
            AlignedBuffer<T>& taken) {
  if (all.size() == 0) return;
  AlignedBuffer<T> kept(all.size() - places.size() * size);
  taken = AlignedBuffer<T>(places.size() * size);
  T *next_kept = kept.data(), *next_taken = taken.data();
  const T* from = all.data();
  for (const std::int32_t place : places) {
    const T* sample = all.data() + static_cast<std::size_t>(place) * size;
    next_kept = std::copy(from, sample, next_kept);
    next_taken = std::copy_n(sample, size, next_taken);
    from = sample + size;
  }
  std::copy(from, static_cast<const T*>(all.data()) + all.size(), next_kept);
  all = std::move(kept);
}

void divide(std::vector<std::int32_t>& labels, std::span<const std::int32_t> places,
            std::vector<std::int32_t>& taken) {
  std::size_t kept = 0, next = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (next < places.size() && static_cast<std::size_t>(places[next]) == i) {
      taken.push_back(labels[i]);
      ++next;
    } else {
      labels[kept++] = labels[i];
    }
  }
  labels.resize(kept);
}

}  // namespace

std::int64_t HoldOut::count_of(std::int64_t all) const {
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
  if (const auto samples = parse_int64(text))
    return *samples >= 0 ? std::optional(HoldOut{.samples = *samples}) : std::nullopt;
  const auto share = parse_double(text);
  return share && *share >= kLeastShare && *share < 1 ? std::optional(HoldOut{.share = *share})
                                                      : std::nullopt;
}

std::string to_string(const HoldOut& hold_out) {
  return hold_out.share > 0 ? format_double(hold_out.share) : std::to_string(hold_out.samples);
}

/// The first places of a Fisher-Yates shuffle.
std::vector<std::int32_t> held_out_samples(std::int64_t samples, std::int64_t count, std::uint64_t seed) {
  LOCKSTEP_CHECK(count >= 0 && count <= samples && samples <= std::numeric_limits<std::int32_t>::max());
  std::vector<std::int32_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto left = static_cast<std::uint32_t>(samples) - i;
    std::swap(order[i], order[i + Draws(seed, DataStream::kHoldOut, i).below(left)]);
  }
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  return order;
}

std::int64_t place_in_file(const TrainTestData& data, const Dataset& part, std::int64_t index) {
  if (&part == &data.validation) return data.held_out[static_cast<std::size_t>(index)];
  if (&part == &data.test) return index;
  for (const std::int32_t held_out : data.held_out) {
    if (held_out > index) break;
    ++index;
  }
  return index;
}

void hold_out(TrainTestData& data, const HoldOut& how_many, std::uint64_t seed) {
  Dataset &train = data.train, &validation = data.validation;
  const auto all = static_cast<std::size_t>(train.size());
  data.held_out = held_out_samples(train.size(), how_many.count_of(train.size()), seed);
  const auto size = static_cast<std::size_t>(train.shape.features());
  require_memory(bytes_of(train.images, size, all) + bytes_of(train.features, size, all),
                 "holding samples out of " + train.name, "use a machine with more memory");
  validation.name = name_of_validation(train.name);
  validation.shape = train.shape;
  validation.classes = train.classes;
  divide(train.images, size, data.held_out, validation.images);
  divide(train.features, size, data.held_out, validation.features);
  divide(train.labels, data.held_out, validation.labels);
}

}  // namespace lockstep
