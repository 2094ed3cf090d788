// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the check of products is on every processor: which products there are, and what is counted and found.
#pragma once

#include "trainer/burn/check.hpp"
#include "trainer/burn/exact_product.hpp"

#include <array>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace lockstep::burn {

inline constexpr std::array kPasses{Pass::kForward, Pass::kDataGradient, Pass::kWeightGradient};

/// Every product of every case in turn, as long as the slice lasts.
class ProductCheck : public BurnCheck {
 public:
  explicit ProductCheck(const BurnRank& rank);
  void work(const Slice& slice, std::int64_t round) override;

 protected:
  /// Proves the first result, and compares others with it until the slice ends.
  virtual void burn(const ProductCase& product, Pass pass, std::uint64_t seed, const Slice& slice) = 0;

  // From any thread.
  void found(const std::string& what);
  void found(const ProductCase& product, Pass pass, const WrongNumber& wrong);
  void count(std::int64_t products, double flops);
  /// @param load  how busy the processor was, or empty
  void report_counts(RankResult& result, const std::string& load) const;

  const BurnRank rank_;
  const std::vector<ProductCase> cases_;

 private:
  std::mutex mutex_;
  std::int64_t products_ = 0, wrong_ = 0;
  double flops_ = 0;
  std::string first_wrong_;
};

/// y or dx as ProductProof has it.
std::vector<std::int64_t> integers_of(std::span<const float> numbers);
/// dw, then db, as ProductProof has it: [weights of a filter, then the bias][filters].
std::vector<std::int64_t> transposed(const Conv2dShape& s, std::span<const std::int64_t> dw_and_db);

std::unique_ptr<BurnCheck> make_host_products(const BurnRank& rank);
std::unique_ptr<BurnCheck> make_device_products(const BurnRank& rank);

}  // namespace lockstep::burn
