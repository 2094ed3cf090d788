// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The order of an epoch and its division into batches, grains and ranks.
#include "data/sampler.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "kernels/numerics/random.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace lockstep {
namespace {

/// The random words of a shuffle. Draw i is word i % 4 of philox(seed, {i / 4, attempt, stream, number}).
class ShuffleDraws {
 public:
  ShuffleDraws(std::uint64_t seed, std::uint32_t stream, std::uint32_t number)
      : seed_(seed), stream_(stream), number_(number) {}

  static ShuffleDraws of_epoch(std::uint64_t seed, std::int64_t epoch, RandomUse use = RandomUse::kShuffle) {
    LOCKSTEP_CHECK(epoch >= 0 && epoch >> 56 == 0);
    return {seed, random_stream(use, static_cast<std::uint32_t>(epoch & 0x00FFFFFF)),
            static_cast<std::uint32_t>(epoch >> 24)};
  }
  /// The round-th order of a class; rounds that differ by 2^32 are the same.
  static ShuffleDraws of_class(std::uint64_t seed, std::int32_t label, std::int64_t round) {
    LOCKSTEP_CHECK(label >= 0 && label >> 24 == 0);
    return {seed, random_stream(RandomUse::kBalance, static_cast<std::uint32_t>(label)),
            static_cast<std::uint32_t>(round)};
  }

  /// Uniform in [0, bound), exactly: Lemire, "Fast random integer generation in an interval", 2019. The
  /// attempt is above 0 only for the few words (bound of 2^32) that would make small numbers likelier.
  std::uint32_t below(std::uint32_t bound, std::uint32_t i) {
    if (i / 4 != at_) block_ = block(at_ = i / 4, 0);
    std::uint64_t product = std::uint64_t{block_.value[i % 4]} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t threshold = (0U - bound) % bound;
      for (std::uint32_t attempt = 1; static_cast<std::uint32_t>(product) < threshold; ++attempt)
        product = std::uint64_t{block(i / 4, attempt).value[i % 4]} * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  Philox4 block(std::uint32_t index, std::uint32_t attempt) const {
    return philox(seed_, {{index, attempt, stream_, number_}});
  }

  std::uint64_t seed_;
  std::uint32_t stream_, number_;
  Philox4 block_{};
  std::uint32_t at_ = UINT32_MAX;  ///< number of the block; no block has this one
};

/// By Fisher-Yates. @param first  draw
void shuffle(std::span<std::int32_t> order, ShuffleDraws draws, std::uint32_t first = 0) {
  const auto count = static_cast<std::uint32_t>(order.size());
  for (std::uint32_t i = 0; i + 1 < count; ++i) {  // place i gets one of those not placed yet: i .. count - 1
    const std::uint32_t other = i + draws.below(count - i, first + i);
    std::swap(order[i], order[other]);
  }
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

void check_sizes(const DistributedSampler::Options& o) {
  if (o.samples <= 0 || o.samples > std::numeric_limits<std::int32_t>::max())
    throw ConfigError(fmt::format("data set: {} samples; expected 1 to 2147483647", o.samples));
  if (o.global_batch <= 0)
    throw ConfigError(fmt::format("a global batch of {} samples is not above 0", o.global_batch));
  if (o.grain <= 0) throw ConfigError(fmt::format("a grain of {} samples is not above 0", o.grain));
  LOCKSTEP_CHECK(o.world_size >= 1 && o.rank >= 0 && o.rank < o.world_size);
  LOCKSTEP_CHECK(o.balanced_labels.empty() || (o.shuffle && std::ssize(o.balanced_labels) == o.samples));
  LOCKSTEP_CHECK(o.window == 0 || (o.window > 0 && o.shuffle && o.balanced_labels.empty()));
}

std::int64_t grains_in_full_batch(const DistributedSampler::Options& o) {
  return divide_up(std::min(o.global_batch, o.samples), o.grain);
}

/// With a batch for each rank fewer ranks have fewer grains.
std::int64_t most_ranks(DistributedSampler::Options o) {
  if (o.per_rank_batch == 0) return grains_in_full_batch(o);
  do {
    --o.world_size;
    o.global_batch = o.per_rank_batch * o.world_size;
  } while (o.world_size > 1 && grains_in_full_batch(o) < o.world_size);
  return o.world_size;
}

/// Changes that give every rank work. Possible are a smaller grain (in whole SIMD groups of 16 where that can be), a
/// larger batch where there are samples for it, or fewer ranks.
std::vector<std::string> ways_to_work_for_all(const DistributedSampler::Options& o, std::int64_t full_batch) {
  constexpr std::int64_t kGroup = 16;
  const std::int64_t grain = full_batch / o.world_size, batch = std::int64_t{o.world_size} * o.grain;
  std::vector<std::string> ways;
  if (grain > 0)
    ways.push_back(
        fmt::format("add {}={}", spelling().grain, grain >= kGroup ? grain / kGroup * kGroup : grain));
  if (batch <= o.samples && o.per_rank_batch > 0)
    ways.push_back(fmt::format("add {}={}", spelling().per_rank_batch, o.grain));
  else if (batch <= o.samples)
    ways.push_back(fmt::format("add {}={}", spelling().global_batch, batch));
  ways.push_back(fmt::format("start no more than {}", most_ranks(o)));
  return ways;
}

/// Every rank has work in a full batch if and only if there are as many grains as ranks.
void check_work_for_all(const DistributedSampler::Options& o) {
  const std::int64_t full_batch = std::min(o.global_batch, o.samples);
  const std::int64_t grains = grains_in_full_batch(o);
  if (o.world_size <= grains) return;
  throw ConfigError(
      fmt::format("{}: a global batch of {} in grains of {} has work for {} at "
                  "most, and {} were started; {}",
                  spelling().grain, counted(full_batch, "sample"), o.grain, counted(grains, "rank"),
                  o.world_size, fmt::join(ways_to_work_for_all(o, full_batch), ", or ")));
}

/// The label of a class that has samples, and these, ascending.
using ClassSamples = std::pair<std::int32_t, std::vector<std::int32_t>>;

std::vector<ClassSamples> samples_by_class(std::span<const std::int32_t> labels) {
  std::map<std::int32_t, std::vector<std::int32_t>> by_label;
  for (std::size_t i = 0; i < labels.size(); ++i) by_label[labels[i]].push_back(static_cast<std::int32_t>(i));
  return {std::make_move_iterator(by_label.begin()), std::make_move_iterator(by_label.end())};
}

/// The draws of a class from `first` on, to every `stride`-th place of `to`, until its end.
void draw_class(const ClassSamples& from, std::uint64_t seed, std::int64_t first, std::span<std::int32_t> to,
                std::size_t stride) {
  const auto& [label, samples] = from;
  const std::int64_t size = std::ssize(samples);
  std::int64_t round = first / size;
  auto next = static_cast<std::size_t>(first % size);
  std::size_t at = 0;
  while (at < to.size()) {
    std::vector<std::int32_t> order = samples;
    shuffle(order, ShuffleDraws::of_class(seed, label, round++));
    for (; next < order.size() && at < to.size(); at += stride) to[at] = order[next++];
    next = 0;
  }
}

}  // namespace

std::vector<std::int32_t> file_order(std::int64_t samples) {
  LOCKSTEP_CHECK(samples >= 0 && samples <= std::numeric_limits<std::int32_t>::max());
  std::vector<std::int32_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::int32_t> epoch_permutation(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int32_t> order = file_order(samples);
  shuffle(order, ShuffleDraws::of_epoch(seed, epoch));
  return order;
}

std::vector<std::int32_t> windowed_order(std::int64_t samples, std::int64_t window, std::uint64_t seed,
                                         std::int64_t epoch) {
  LOCKSTEP_CHECK(window > 0);
  if (window >= samples) return epoch_permutation(samples, seed, epoch);
  const auto draws = ShuffleDraws::of_epoch(seed, epoch, RandomUse::kWindow);
  // Piece i has the samples from window * i - left on. The cut that is drawn lies `left` before the end of a window.
  const std::int64_t left = ShuffleDraws(draws).below(static_cast<std::uint32_t>(window), 0);
  std::vector<std::int32_t> pieces = file_order(divide_up(samples + left, window));
  shuffle(pieces, draws, 1);
  std::vector<std::int32_t> order;
  order.reserve(static_cast<std::size_t>(samples));
  for (const std::int32_t piece : pieces) {
    const std::size_t at = order.size();
    const std::int64_t end = std::min(samples, window * (piece + 1) - left);
    for (std::int64_t i = std::max<std::int64_t>(0, window * piece - left); i < end; ++i)
      order.push_back(static_cast<std::int32_t>(i));
    shuffle(std::span(order).subspan(at), ShuffleDraws::of_epoch(seed, epoch),
            static_cast<std::uint32_t>(at));
  }
  return order;
}

std::vector<std::int32_t> balanced_order(std::span<const std::int32_t> labels, std::uint64_t seed,
                                         std::int64_t epoch) {
  const std::int64_t count = std::ssize(labels);
  LOCKSTEP_CHECK(count > 0 && epoch >= 0 && epoch < std::numeric_limits<std::int64_t>::max() / count - 1);
  const auto classes = samples_by_class(labels);
  const std::int64_t turns = std::ssize(classes), first = epoch * count;
  std::vector<std::int32_t> order(labels.size());
  for (std::int64_t i = 0; i < turns; ++i)  // the draws first + i, first + i + turns, ...
    draw_class(at(classes, (first + i) % turns), seed, (first + i) / turns,
               std::span(order).subspan(static_cast<std::size_t>(i)), static_cast<std::size_t>(turns));
  shuffle(order, ShuffleDraws::of_epoch(seed, epoch));
  return order;
}

DistributedSampler::DistributedSampler(const Options& options) : options_(options) {
  check(options);
}

void DistributedSampler::check(const Options& options) {
  check_sizes(options);
  check_work_for_all(options);
}

std::int64_t DistributedSampler::steps_per_epoch(const Options& options) {
  return divide_up(options.samples, options.global_batch);
}

std::int64_t DistributedSampler::steps_per_epoch() const {
  return steps_per_epoch(options_);
}

std::int64_t DistributedSampler::batch_samples(std::int64_t step_in_epoch) const {
  LOCKSTEP_CHECK(step_in_epoch >= 0 && step_in_epoch < steps_per_epoch());
  return std::min(options_.global_batch, options_.samples - step_in_epoch * options_.global_batch);
}

std::int64_t DistributedSampler::batch_grains(std::int64_t step_in_epoch) const {
  return divide_up(batch_samples(step_in_epoch), options_.grain);
}

std::vector<Grain> DistributedSampler::local_grains(std::int64_t step_in_epoch) const {
  return grains_of(options_.rank, step_in_epoch);
}

/// First grain of the share of `rank`, which is where that of the rank before it ends.
std::int64_t DistributedSampler::begin_of(int rank, std::int64_t grains) const {
  if (options_.split == Split::kEven) return grains * rank / options_.world_size;
  return std::min(grains, divide_up(grains, options_.world_size) * rank);
}

std::vector<Grain> DistributedSampler::grains_of(int rank, std::int64_t step_in_epoch) const {
  const std::int64_t samples = batch_samples(step_in_epoch), grains = divide_up(samples, options_.grain);
  const std::int64_t begin = begin_of(rank, grains), end = begin_of(rank + 1, grains);
  std::vector<Grain> result;
  result.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t g = begin; g < end; ++g) {
    const std::int64_t first = g * options_.grain;
    result.push_back({first, static_cast<int>(std::min<std::int64_t>(options_.grain, samples - first))});
  }
  return result;
}

void DistributedSampler::set_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return;
  if (!options_.balanced_labels.empty())
    order_ = balanced_order(options_.balanced_labels, options_.seed, epoch);
  else if (options_.shuffle && options_.window > 0)
    order_ = windowed_order(options_.samples, options_.window, options_.seed, epoch);
  else if (options_.shuffle)
    order_ = epoch_permutation(options_.samples, options_.seed, epoch);
  else if (order_.empty())
    order_ = file_order(options_.samples);
  epoch_ = epoch;
}

std::span<const std::int32_t> DistributedSampler::indices(std::int64_t step_in_epoch,
                                                          const Grain& grain) const {
  LOCKSTEP_CHECK(epoch_ >= 0);  // set_epoch comes first
  LOCKSTEP_CHECK(grain.first >= 0 && grain.samples >= 0 &&
                 grain.first + grain.samples <= batch_samples(step_in_epoch));
  const auto begin = static_cast<std::size_t>(step_in_epoch * options_.global_batch + grain.first);
  return std::span(order_).subspan(begin, static_cast<std::size_t>(grain.samples));
}

}  // namespace lockstep
