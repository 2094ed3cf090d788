// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SampleMixer, and the quantiles of the beta distribution by arithmetic that is the same on every machine.
#include "common/error.hpp"
#include "data/augmentation.hpp"
#include "kernels/numerics/augment_draws.hpp"
#include "kernels/numerics/portable_math.hpp"

#include <cmath>
#include <cstddef>

namespace lockstep {

// Beta(alpha, alpha) is symmetric about a half, so one half of its table is enough.

namespace {

/// The probability of a share up to x <= 1/2, except for a factor. It is x^alpha (1 - x)^alpha times a hypergeometric
/// series whose terms are all positive.
double below(double alpha, double x) {
  const double log_of_power = alpha * portable_log(4 * x * (1 - x));
  if (log_of_power < -600) return 0;
  double term = 1, sum = 1;
  for (int n = 0; term > 1e-17 * sum; ++n) {
    term *= (2 * alpha + n) / (alpha + 1 + n) * x;
    sum += term;
  }
  return portable_exp(log_of_power) * sum;
}

}  // namespace

ShareTable beta_shares(double alpha) {
  constexpr int kBits = 22, kHalf = 1 << (kBits - 1);  // bits within a share, and a half of it
  const double all = 2 * below(alpha, 0.5);
  ShareTable table = {};
  const std::size_t last = table.size() - 1;
  int share = 0;
  for (std::size_t i = 1; i < last / 2; ++i) {
    const double wanted = all * static_cast<double>(i) / static_cast<double>(last);
    // The largest share that is not beyond it.
    for (int step = kHalf; step > 0; step /= 2)
      if (share + step < kHalf && below(alpha, std::ldexp(share + step, -kBits)) <= wanted) share += step;
    table[i] = (share + (1 << (kBits - kShareBits - 1))) >> (kBits - kShareBits);
  }
  table[last / 2] = kShareOne / 2;
  for (std::size_t i = 0; i < last / 2; ++i) table[last - i] = kShareOne - table[i];
  return table;
}

namespace {

/// @param bits  random ones
std::int32_t share_of(const ShareTable& shares, std::uint32_t bits) {
  constexpr int kIntervalBits = 10, kPartBits = 32 - kIntervalBits;
  static_assert(std::size_t{1} << kIntervalBits == std::tuple_size_v<ShareTable> - 1);
  const std::size_t interval = bits >> kPartBits;
  const std::int64_t part = bits & ((std::uint32_t{1} << kPartBits) - 1);
  const std::int64_t low = shares[interval], high = shares[interval + 1];
  return static_cast<std::int32_t>(low + augment::shift_rounded((high - low) * part, kPartBits));
}

/// A box around a place, of the partner's share of the area, as far as it lies in the image.
SampleMix cut(const ImageShape& shape, std::int32_t share, int x, int y) {
  const std::int64_t side = augment::square_root(std::int64_t{kShareOne - share} << kShareBits);
  const std::int64_t aside = (side * shape.width) >> (kShareBits + 1);
  const std::int64_t down = (side * shape.height) >> (kShareBits + 1);
  SampleMix to;
  to.left = static_cast<std::int16_t>(augment::within(x - aside, 0, shape.width));
  to.right = static_cast<std::int16_t>(augment::within(x + aside, 0, shape.width));
  to.top = static_cast<std::int16_t>(augment::within(y - down, 0, shape.height));
  to.bottom = static_cast<std::int16_t>(augment::within(y + down, 0, shape.height));
  const std::int64_t all = std::int64_t{shape.width} * shape.height;
  const std::int64_t area = std::int64_t{to.right - to.left} * (to.bottom - to.top);
  to.share = kShareOne - static_cast<std::int32_t>((area * kShareOne + all / 2) / all);
  to.pixel_share = 0;
  return to;
}

/// All of the image.
SampleMix blend(const ImageShape& shape, std::int32_t share) {
  SampleMix to = {.share = share, .pixel_share = share};
  to.right = static_cast<std::int16_t>(shape.width);
  to.bottom = static_cast<std::int16_t>(shape.height);
  return to;
}

}  // namespace

SampleMixer::SampleMixer(const std::vector<Augmentation>& list, const ImageShape& shape, std::uint64_t seed)
    : shape_(shape), seed_(seed) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!mixes_images(list[i].kind)) continue;
    const auto& [alpha, probability, unused] = list[i].values;
    entries_.push_back(
        {list[i].kind, static_cast<int>(i),
         static_cast<std::int32_t>(std::llround(std::ldexp(probability[0], augment::kChanceBits))),
         beta_shares(alpha[0])});
  }
}

std::vector<SampleMix> SampleMixer::draw(std::int64_t epoch, std::span<const std::int32_t> order,
                                         std::int64_t first, std::int64_t count) const {
  std::vector<SampleMix> mixes;
  if (!this->mixes()) return mixes;
  LOCKSTEP_CHECK(first >= 0 && count >= 0 && first + count <= static_cast<std::int64_t>(order.size()));
  mixes.reserve(static_cast<std::size_t>(count));
  for (std::int64_t place = first; place < first + count; ++place)
    mixes.push_back(draw_place(epoch, order, place));
  return mixes;
}

/// The first entry that happens mixes.
SampleMix SampleMixer::draw_place(std::int64_t epoch, std::span<const std::int32_t> order,
                                  std::int64_t place) const {
  for (const Entry& entry : entries_) {
    const augment::Draws draws =
        augment::draws_of(seed_, epoch, static_cast<std::uint32_t>(place), entry.number);
    if (!augment::happens(draws[0], entry.chance)) continue;
    const std::int32_t share = share_of(entry.shares, draws[2]);
    SampleMix mix = entry.kind == AugmentKind::kMixup
                        ? blend(shape_, share)
                        : cut(shape_, share, augment::between(draws[3], 0, shape_.width - 1),
                              augment::between(draws[4], 0, shape_.height - 1));
    const auto places = static_cast<std::int64_t>(order.size());
    mix.partner = order[static_cast<std::size_t>(augment::between(draws[1], 0, places - 1))];
    return mix;
  }
  return {};
}

// Labels.

namespace {

LabelPair labels_of(std::span<const std::int32_t> of_set, std::int32_t sample, const SampleMix& mix) {
  const auto label_of = [&](std::int32_t index) { return of_set[static_cast<std::size_t>(index)]; };
  return mixed_labels(mix, label_of(sample), label_of(mix.partner));
}

}  // namespace

void take_labels(std::span<const std::int32_t> of_set, std::span<const std::int32_t> indices,
                 std::span<const SampleMix> mixes, std::int32_t* labels) {
  for (std::size_t n = 0; n < indices.size(); ++n)
    labels[n] = mixes.empty() ? of_set[static_cast<std::size_t>(indices[n])]
                              : labels_of(of_set, indices[n], mixes[n]).first;
}

std::vector<MixedLabel> second_labels(std::span<const std::int32_t> of_set,
                                      std::span<const std::int32_t> indices,
                                      std::span<const SampleMix> mixes) {
  std::vector<MixedLabel> second;
  for (std::size_t n = 0; n < mixes.size(); ++n)
    second.push_back(labels_of(of_set, indices[n], mixes[n]).second);
  return second;
}

MixedShare::MixedShare(const SampleMixer& mixer, std::int64_t epoch, std::span<const std::int32_t> order,
                       std::int64_t first, std::int64_t count, std::span<const std::int32_t> of_set)
    : first_(first), mixes_(mixer.draw(epoch, order, first, count)) {
  second_labels_ =
      lockstep::second_labels(of_set, order.subspan(static_cast<std::size_t>(first), mixes_.size()), mixes_);
}

std::span<const SampleMix> MixedShare::mixes(std::int64_t place, int count) const {
  if (mixes_.empty()) return {};
  return std::span(mixes_).subspan(static_cast<std::size_t>(place - first_), static_cast<std::size_t>(count));
}

const MixedLabel* MixedShare::second_labels(std::int64_t place) const {
  return mixes_.empty() ? nullptr : second_labels_.data() + (place - first_);
}

}  // namespace lockstep
