// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Products that are exact by construction: all numbers are small integers, so that fp32 rounds nothing, whatever the
/// order of the sums. Whether a result is right is seen without computing it a second time, by Freivalds' method.
///
/// Source: R. Freivalds, "Probabilistic machines can use less running time", IFIP 1977. A product Y = W X is right if
/// Y r = W (X r) for a random r. Here numbers are integers modulo 2^64 and every r is odd, so a single wrong number is
/// always seen; two vectors tell in which column it stands.
#pragma once

#include "kernels/shapes.hpp"
#include "trainer/burn/check.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::burn {

enum class Pass { kForward, kDataGradient, kWeightGradient };

/// An op at a shape. A fully connected layer is a convolution of one pixel by filters of one pixel.
struct ProductCase {
  std::string name;        ///< "conv2d 50@5x5 of 20x13x13"
  Conv2dShape shape;       ///< stride 1, no padding
  bool is_linear = false;  ///< which op is called

  LinearShape linear() const { return {shape.batch, shape.in_channels, shape.out_channels}; }
};
/// "conv2d 50@5x5 of 20x13x13 weight gradient"
std::string name_of(const ProductCase& product, Pass pass);

/// Integers from -3 to 3, whose sums stay far below 2^24.
struct ProductOperands {
  std::vector<float> x, w, b, dy;
};
ProductOperands make_operands(const ProductCase& product, std::uint64_t seed);

/// A number that is not what it must be.
struct WrongNumber {
  std::size_t row = 0;
  std::optional<std::size_t> column;  ///< nothing: several of the row are wrong
};

/// The projections of the right result onto two random vectors. The result is seen as a matrix: of y and dx, a row for
/// each channel and pixel, a column for each sample; of gradients of weights, a row for each weight of a filter and one
/// for the bias, a column for each filter.
class ProductProof {
 public:
  ProductProof(const ProductCase& product, Pass pass, const ProductOperands& operands, std::uint64_t seed);

  std::size_t rows() const { return expected_.size(); }
  std::size_t columns() const { return vectors_.size(); }
  /// @param result  [rows][columns]
  std::optional<WrongNumber> find_wrong(std::span<const std::int64_t> result) const;

 private:
  using Pair = std::array<std::uint64_t, 2>;

  void project_forward(const Conv2dShape& s, const ProductOperands& operands);
  void project_data_gradient(const Conv2dShape& s, const ProductOperands& operands);
  void project_weight_gradient(const Conv2dShape& s, const ProductOperands& operands);
  /// Of [rows][columns].
  std::vector<Pair> projected(std::span<const float> matrix) const;
  WrongNumber locate(std::size_t row, const Pair& off) const;

  std::vector<Pair> vectors_;   ///< of each column: odd numbers
  std::vector<Pair> expected_;  ///< of each row
};

/// A float of a result; something that no sum is where it is no integer, or too large, or NaN.
std::int64_t integer_of(float number);

// What the check of products is on every processor: which products there are, and what is counted and found.

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
