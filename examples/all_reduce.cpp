// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Takes of Lockstep the exact sums alone: least squares by gradient descent, with gradients that this program computes
/// itself. The weights are the same bits on any number of ranks.
///
///     ./all_reduce
///     mpirun -np 3 ./all_reduce
#include <lockstep/communicator.hpp>
#include <lockstep/gradient_reducer.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kSamples = 4096, kSlice = 64, kSlices = kSamples / kSlice, kSteps = 100;
constexpr std::size_t kNumbers = 4;  // three slopes, and an offset

/// Sample i: three inputs, and what the fit is to give for them.
struct Sample {
  std::array<float, 3> x;
  float y;
};
Sample make_sample(int i) {
  const auto t = static_cast<float>(i);
  const std::array<float, 3> x = {std::sin(0.1F * t), std::cos(0.37F * t), std::sin(1.7F * t + 1)};
  return {x, 2 * x[0] - 3 * x[1] + 0.5F * x[2] + 1 + 0.01F * std::sin(13 * t)};
}

/// The gradient's sum over a slice of the batch, always in the order of the samples. A slice depends on no rank.
std::vector<float> gradient_of(int slice, const std::vector<float>& w) {
  std::vector<float> gradient(kNumbers);
  for (int i = slice * kSlice; i < (slice + 1) * kSlice; ++i) {
    const auto [x, y] = make_sample(i);
    const float error = w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] - y;
    for (std::size_t k = 0; k < 3; ++k) gradient[k] += error * x[k];
    gradient[3] += error;
  }
  return gradient;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::Mpi mpi(argc, argv);
  auto& world = mpi.world();

  // Two tensors, slopes and offset, each with its own unit. A step has 64 terms, on any number of ranks.
  const std::array<std::size_t, 2> tensors = {3, 1};
  lockstep::GradientReducer reducer(world, tensors, kSlices);
  std::vector<float> w(kNumbers), mean(kNumbers);

  for (int step = 0; step < kSteps; ++step) {
    const int first = kSlices * world.rank() / world.size(),
              last = kSlices * (world.rank() + 1) / world.size();
    reducer.begin_step(last - first);
    for (int slice = first; slice < last; ++slice) reducer.add(gradient_of(slice, w), kSlice);
    reducer.mean(mean);  // over the slices of all ranks
    for (std::size_t k = 0; k < kNumbers; ++k) w[k] -= 0.8F * mean[k];
  }

  if (world.rank() != 0) return 0;
  std::printf("y = %.3f a %+.3f b %+.3f c %+.3f\nbits", w[0], w[1], w[2], w[3]);
  for (const float number : w) {
    unsigned bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    std::printf(" %08x", bits);
  }
  std::printf("\n");
}
