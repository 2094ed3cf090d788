// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is projected first costs a fraction of the product: one column in place of all.
#include "trainer/burn/products.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/ops.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::burn {
namespace {

void fill_small(std::vector<float>& numbers, std::size_t size, std::uint64_t key) {
  numbers.resize(size);
  for (std::size_t i = 0; i < size; ++i)
    numbers[i] = static_cast<float>(static_cast<int>((mix_bits(key + i) >> 32) % 7) - 3);
}

std::size_t pixels(const Conv2dShape& s) {
  return static_cast<std::size_t>(s.out_height()) * static_cast<std::size_t>(s.out_width());
}

std::size_t filter_size(const Conv2dShape& s) {
  return s.weight_size() / static_cast<std::size_t>(s.out_channels);
}

std::uint64_t word_of(float small_integer) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(small_integer));
}

/// Calls visit(pixel of y, weight of the filter, pixel and channel of x) for each product of a filter.
template <typename Visit>
void for_each_product(const Conv2dShape& s, const Visit& visit) {
  for (int p = 0; p < s.out_height(); ++p)
    for (int q = 0; q < s.out_width(); ++q)
      for (int c = 0, tap = 0; c < s.in_channels; ++c)
        for (int r = 0; r < s.kernel_height; ++r)
          for (int t = 0; t < s.kernel_width; ++t, ++tap)
            visit(static_cast<std::size_t>(p * s.out_width() + q), static_cast<std::size_t>(tap),
                  static_cast<std::size_t>((c * s.in_height + p + r) * s.in_width + q + t));
}

}  // namespace

std::string name_of(const ProductCase& product, Pass pass) {
  return product.name + (pass == Pass::kForward        ? " forward"
                         : pass == Pass::kDataGradient ? " data gradient"
                                                       : " weight gradient");
}

ProductOperands make_operands(const ProductCase& product, std::uint64_t seed) {
  const Conv2dShape& s = product.shape;
  ProductOperands operands;
  fill_small(operands.x, s.in_size(), burn_key(seed, 1));
  fill_small(operands.w, s.weight_size(), burn_key(seed, 2));
  fill_small(operands.b, static_cast<std::size_t>(s.out_channels), burn_key(seed, 3));
  fill_small(operands.dy, s.out_size(), burn_key(seed, 4));
  return operands;
}

std::int64_t integer_of(float number) {
  constexpr float kMost = 16777216;  // 2^24: up to here fp32 has every integer
  const bool is_integer = std::fabs(number) < kMost && std::trunc(number) == number;
  return is_integer ? static_cast<std::int64_t>(number) : std::numeric_limits<std::int64_t>::max();
}

ProductProof::ProductProof(const ProductCase& product, Pass pass, const ProductOperands& operands,
                           std::uint64_t seed) {
  const Conv2dShape& s = product.shape;
  LOCKSTEP_CHECK(s.is_plain() && s.padding == 0);
  vectors_.resize(static_cast<std::size_t>(pass == Pass::kWeightGradient ? s.out_channels : s.batch));
  for (std::size_t i = 0; i < vectors_.size(); ++i)
    vectors_[i] = {burn_key(seed, i, 1) | 1U, burn_key(seed, i, 2) | 1U};
  switch (pass) {
    case Pass::kForward:
      project_forward(s, operands);
      break;
    case Pass::kDataGradient:
      project_data_gradient(s, operands);
      break;
    case Pass::kWeightGradient:
      project_weight_gradient(s, operands);
      break;
  }
}

std::vector<ProductProof::Pair> ProductProof::projected(std::span<const float> matrix) const {
  std::vector<Pair> sums(matrix.size() / columns());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    const std::uint64_t word = word_of(matrix[i]);
    sums[i / columns()][0] += word * vectors_[i % columns()][0];
    sums[i / columns()][1] += word * vectors_[i % columns()][1];
  }
  return sums;
}

/// y r = w (x r) + b (1 r).
void ProductProof::project_forward(const Conv2dShape& s, const ProductOperands& operands) {
  const std::vector<Pair> x = projected(operands.x);
  Pair ones{};
  for (const Pair& r : vectors_) ones = {ones[0] + r[0], ones[1] + r[1]};
  const std::size_t channels = static_cast<std::size_t>(s.out_channels);
  expected_.resize(channels * pixels(s));
  for (std::size_t k = 0; k < channels; ++k) {
    const float* filter = operands.w.data() + k * filter_size(s);
    Pair* y = expected_.data() + k * pixels(s);
    const std::uint64_t bias = word_of(operands.b[k]);
    for (std::size_t i = 0; i < pixels(s); ++i) y[i] = {bias * ones[0], bias * ones[1]};
    for_each_product(s, [&](std::size_t pixel, std::size_t tap, std::size_t from) {
      const std::uint64_t weight = word_of(filter[tap]);
      y[pixel] = {y[pixel][0] + weight * x[from][0], y[pixel][1] + weight * x[from][1]};
    });
  }
}

/// dx r = w^T (dy r).
void ProductProof::project_data_gradient(const Conv2dShape& s, const ProductOperands& operands) {
  const std::vector<Pair> dy = projected(operands.dy);
  expected_.resize(s.in_size() / static_cast<std::size_t>(s.batch));
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.out_channels); ++k) {
    const float* filter = operands.w.data() + k * filter_size(s);
    const Pair* of_filter = dy.data() + k * pixels(s);
    for_each_product(s, [&](std::size_t pixel, std::size_t tap, std::size_t to) {
      const std::uint64_t weight = word_of(filter[tap]);
      expected_[to] = {expected_[to][0] + weight * of_filter[pixel][0],
                       expected_[to][1] + weight * of_filter[pixel][1]};
    });
  }
}

/// dw^T a = x (dy^T a), summed over pixels and samples; the bias is the sum of dy^T a.
void ProductProof::project_weight_gradient(const Conv2dShape& s, const ProductOperands& operands) {
  const auto batch = static_cast<std::size_t>(s.batch);
  std::vector<Pair> mixed(pixels(s) * batch);
  for (std::size_t i = 0; i < operands.dy.size(); ++i) {
    const std::uint64_t word = word_of(operands.dy[i]);
    const Pair& a = vectors_[i / mixed.size()];
    Pair& to = mixed[i % mixed.size()];
    to = {to[0] + word * a[0], to[1] + word * a[1]};
  }
  expected_.resize(filter_size(s) + 1);
  for_each_product(s, [&](std::size_t pixel, std::size_t tap, std::size_t from) {
    Pair& sum = expected_[tap];
    for (std::size_t n = 0; n < batch; ++n) {
      const std::uint64_t word = word_of(operands.x[from * batch + n]);
      const Pair& of_sample = mixed[pixel * batch + n];
      sum = {sum[0] + word * of_sample[0], sum[1] + word * of_sample[1]};
    }
  });
  for (const Pair& m : mixed) expected_.back() = {expected_.back()[0] + m[0], expected_.back()[1] + m[1]};
}

std::optional<WrongNumber> ProductProof::find_wrong(std::span<const std::int64_t> result) const {
  LOCKSTEP_CHECK(result.size() == rows() * columns());
  for (std::size_t row = 0; row < rows(); ++row) {
    Pair sum{};
    for (std::size_t i = 0; i < columns(); ++i) {
      const auto word = static_cast<std::uint64_t>(result[row * columns() + i]);
      sum = {sum[0] + word * vectors_[i][0], sum[1] + word * vectors_[i][1]};
    }
    if (sum != expected_[row]) return locate(row, {sum[0] - expected_[row][0], sum[1] - expected_[row][1]});
  }
  return std::nullopt;
}

/// One wrong number d in column i makes the sums wrong by d r_i and d s_i.
WrongNumber ProductProof::locate(std::size_t row, const Pair& off) const {
  for (std::size_t i = 0; i < columns(); ++i)
    if (off[0] * vectors_[i][1] == off[1] * vectors_[i][0]) return {row, i};
  return {row, std::nullopt};
}

// The check of products on every processor.

namespace {

constexpr std::array kPasses{Pass::kForward, Pass::kDataGradient, Pass::kWeightGradient};

std::vector<ProductCase> cases_for(const BurnRank& rank) {
  if (rank.is_emulated())
    return {{"conv2d 4@3x3 of 3x6x6", {4, 3, 6, 6, 4, 3, 3}, false},
            {"linear 24-10", {4, 24, 1, 1, 10, 1, 1}, true}};
  const int times = rank.device.gpu == nullptr ? 1 : 16;
  return {{"conv2d 50@5x5 of 20x13x13", {32 * times, 20, 13, 13, 50, 5, 5}, false},
          {"conv2d 64@3x3 of 64x10x10", {32 * times, 64, 10, 10, 64, 3, 3}, false},
          {"linear 800-128", {64 * times, 800, 1, 1, 128, 1, 1}, true}};
}

/// "row 7, sample 5 (lane 5)"
std::string where(const WrongNumber& wrong, Pass pass) {
  if (!wrong.column) return fmt::format("several numbers of row {}", wrong.row);
  if (pass == Pass::kWeightGradient) return fmt::format("weight {} of filter {}", wrong.row, *wrong.column);
  return fmt::format("row {}, sample {} (lane {})", wrong.row, *wrong.column, *wrong.column % cpu::kLanes);
}

}  // namespace

ProductCheck::ProductCheck(const BurnRank& rank) : rank_(rank), cases_(cases_for(rank)) {}

void ProductCheck::work(const Slice& slice, std::int64_t round) {
  const double seconds = slice.seconds() / static_cast<double>(cases_.size() * kPasses.size());
  for (const ProductCase& product : cases_)
    for (const Pass pass : kPasses) {
      if (stop_requested()) return;
      const std::uint64_t seed = burn_key(static_cast<std::uint64_t>(round), product.shape.in_size());
      burn(product, pass, seed, Slice(slice.is_over() ? 0 : seconds));
      rank_.tick("products");
    }
}

void ProductCheck::found(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++wrong_;
  if (first_wrong_.empty()) first_wrong_ = what;
}

void ProductCheck::found(const ProductCase& product, Pass pass, const WrongNumber& wrong) {
  found(fmt::format("{}: {}", name_of(product, pass), where(wrong, pass)));
}

void ProductCheck::count(std::int64_t products, double flops) {
  const std::lock_guard lock(mutex_);
  products_ += products;
  flops_ += flops;
}

void ProductCheck::report_counts(RankResult& result, const std::string& load) const {
  if (products_ == 0) return;
  result.exercised["products"] =
      fmt::format("{}, {:.1f} GFLOP, {} kernels at {} shapes{}", counted(products_, "product"), flops_ * 1e-9,
                  kPasses.size() * 2, cases_.size(), load);
  if (wrong_ == 0) return;
  result.findings.push_back({Grade::kWrong, "product",
                             fmt::format("{} of {} wrong; the first: {}", with_thousands(wrong_),
                                         counted(products_, "product"), first_wrong_),
                             "take this processor out of service; burn it alone, on another core or GPU too, "
                             "to see whether the fault stays"});
}

std::vector<std::int64_t> integers_of(std::span<const float> numbers) {
  std::vector<std::int64_t> result(numbers.size());
  std::ranges::transform(numbers, result.begin(), integer_of);
  return result;
}

std::vector<std::int64_t> transposed(const Conv2dShape& s, std::span<const std::int64_t> dw_and_db) {
  const auto filters = static_cast<std::size_t>(s.out_channels);
  const std::size_t size = s.weight_size() / filters;
  std::vector<std::int64_t> result((size + 1) * filters);
  for (std::size_t k = 0; k < filters; ++k) {
    for (std::size_t tap = 0; tap < size; ++tap) result[tap * filters + k] = dw_and_db[k * size + tap];
    result[size * filters + k] = dw_and_db[s.weight_size() + k];
  }
  return result;
}

std::unique_ptr<BurnCheck> make_products(const BurnRank& rank) {
  return rank.device.gpu == nullptr ? make_host_products(rank) : make_device_products(rank);
}

}  // namespace lockstep::burn
