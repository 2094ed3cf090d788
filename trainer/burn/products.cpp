// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shapes: on CPUs such that the kernels are bound by arithmetic; for the emulator as small as they can be.
#include "trainer/burn/products.hpp"

#include "common/text_layout.hpp"
#include "kernels/cpu/ops.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::burn {
namespace {

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
