// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rig of the tests of vendor kernels: native and vendor ops of one device, fed with the same numbers. Each
/// has its own layout. Built twice: for GPUs with cuDNN and cuBLAS, and for the emulator with fakes of them
/// (fake_libraries/), which show that the libraries are called rightly.
#pragma once

#include "kernels/vendor/vendor.hpp"
#include "tests/kernels/device/problems.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

std::unique_ptr<VendorOps> vendor_ops_under_test(
    Device& device, VendorAlgorithms algorithms = VendorAlgorithms::kReproducible);
/// Sizes of batches to try: those of real training on a GPU, a few samples in the emulator.
std::vector<int> batches_under_test();

using reference::describe;

/// Calls check(shape) for each shape that shapes(batch) returns, for each batch.
template <typename Shapes, typename Check>
void for_each_shape(const Shapes& shapes, const Check& check) {
  for (const int batch : batches_under_test())
    for (const auto& shape : shapes(batch)) {
      SCOPED_TRACE(describe(shape));
      check(shape);
    }
}

class VendorRig : public DeviceRig {
 public:
  VendorRig() : vendor_(vendor_ops_under_test(device())) {}
  DeviceOps& native() { return ops(); }
  VendorOps& vendor() { return *vendor_; }

 private:
  std::unique_ptr<VendorOps> vendor_;
};

/// [feature][sample] → [sample][feature].
template <typename T>
std::vector<T> to_samples(const std::vector<T>& columns, int batch) {
  const auto samples = static_cast<std::size_t>(batch), features = columns.size() / samples;
  std::vector<T> result(columns.size());
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t n = 0; n < samples; ++n) result[n * features + f] = columns[f * samples + n];
  return result;
}

/// [sample][feature] → [feature][sample].
template <typename T>
std::vector<T> to_columns(const std::vector<T>& samples, int batch) {
  return to_samples(samples, static_cast<int>(samples.size()) / batch);
}

template <class... T>
std::tuple<std::vector<T>...> to_columns(const std::tuple<std::vector<T>...>& all, int batch) {
  return std::apply([&](const auto&... samples) { return std::tuple(to_columns(samples, batch)...); }, all);
}

/// Native results and vendor's, both batch innermost.
/// @param run  called with ops and with `numbers` in their layout; returns a tuple of vectors
template <class Run, class... T>
auto run_both(VendorRig& rig, int batch, const Run& run, const std::vector<T>&... numbers) {
  return std::pair(run(rig.native(), numbers...),
                   to_columns(run(rig.vendor(), to_samples(numbers, batch)...), batch));
}

/// Each element within `tolerance` times the largest absolute value.
template <typename T>
void expect_agreement(const std::vector<T>& native, const std::vector<T>& vendor, double tolerance,
                      const std::string& what) {
  ASSERT_EQ(native.size(), vendor.size()) << what;
  double largest = 0, worst_error = -1;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < native.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(native[i])));
    const double error = std::abs(static_cast<double>(native[i]) - static_cast<double>(vendor[i]));
    if (!(error <= worst_error)) worst = i, worst_error = error;
  }
  constexpr std::size_t kFew = 50;  // fewer numbers may all be 0 after dropout and ReLU
  if (native.size() >= kFew) {
    EXPECT_GT(largest, 0) << what << ": nothing was computed";
  }
  EXPECT_LE(worst_error, tolerance * largest) << what << ": element " << worst << " is " << native[worst]
                                              << " natively and " << vendor[worst] << " by the vendor";
}

inline constexpr double kVendorTolerance = 1e-5;

inline void expect_agreement(const ExactSums& native, const ExactSums& vendor, const std::string& what) {
  expect_agreement(native.dw(), vendor.dw(), kVendorTolerance, what + " dw");
  expect_agreement(native.db(), vendor.db(), kVendorTolerance, what + " db");
  EXPECT_EQ(native.refused(), 0) << what;
  EXPECT_EQ(vendor.refused(), 0) << what;
}

/// The epilogues of Net and LeNet, and none.
inline std::vector<Epilogue> epilogues_under_test(bool with_pool) {
  const EpilogueStep relu{.kind = EpilogueKind::kRelu};
  const EpilogueStep dropout{
      .kind = EpilogueKind::kDropout, .whole_channels = with_pool, .layer = 3, .probability = 0.5F};
  const auto epilogue = [](std::initializer_list<EpilogueStep> steps, int pool) {
    Epilogue made;
    for (const EpilogueStep& step : steps) made.steps[made.count++] = step;
    made.pool = pool;
    made.seed = 17;
    made.first_sample = 5;
    return made;
  };
  if (!with_pool) return {epilogue({}, 1), epilogue({relu}, 1), epilogue({relu, dropout}, 1)};
  return {epilogue({}, 1), epilogue({dropout, {.kind = EpilogueKind::kMaxPool}, relu}, 2),
          epilogue({relu, {.kind = EpilogueKind::kAvgPool}}, 2)};
}

}  // namespace lockstep::test
