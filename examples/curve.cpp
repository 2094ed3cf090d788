// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watches a training step by step and draws what it saw. Samples are made by a function, when they are needed; ranks are
/// threads of this process, so that neither data nor mpirun are needed:
///
///     ./curve 3
#include <lockstep/lockstep.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace {

/// Waves of one, two, three or four periods: the label says how many. The phase is another in each sample.
void make_wave(std::int64_t index, std::span<float> sample) {
  const auto periods = static_cast<float>(1 + index % 4), phase = static_cast<float>(index);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const float at = static_cast<float>(i) / static_cast<float>(sample.size());
    sample[i] = std::sin(6.28318F * periods * at + phase);
  }
}

/// A line of text for each row, the first point at the left.
void draw(const std::vector<double>& points, std::size_t width, int rows) {
  const double top = *std::ranges::max_element(points);
  for (int row = rows; row > 0; --row) {
    std::string line;
    for (std::size_t column = 0; column < width; ++column) {
      const double point = points[column * points.size() / width];
      line += point > top * (row - 0.5) / rows ? '#' : ' ';
    }
    std::printf("%6.3f |%s\n", top * row / rows, line.c_str());
  }
}

void train(lockstep::Communicator& world) {
  const auto waves = lockstep::Dataset::from_function(
      {.channels = 1, .height = 1, .width = 32}, /*classes=*/4,
      /*size=*/4096, make_wave, [](std::int64_t i) { return static_cast<int>(i % 4); });
  const auto net = lockstep::Network::parse(
      "layers:\n"
      "  - conv2d: {out: 8, kernel: [1, 7]}\n"
      "  - relu\n"
      "  - conv2d: {out: 16, kernel: [1, 7], stride: 1}\n"
      "  - relu\n"
      "  - global_avg_pool\n"
      "  - linear: classes\n",
      waves.shape(), waves.classes());
  lockstep::Trainer trainer(
      net, waves, world,
      {.global_batch = 256, .optimizer = lockstep::adam(0.01), .epochs = 6, .clip_norm = 1});

  std::vector<double> losses, norms;
  trainer.observe([&](const lockstep::StepReport& step) {
    losses.push_back(step.loss);
    norms.push_back(step.gradient_norm);
  });
  for (int epoch = 0; epoch < 6; ++epoch) trainer.epoch();

  if (world.rank() != 0) return;  // all saw the same
  std::printf("loss of %zu steps\n", losses.size());
  draw(losses, 64, 8);
  std::printf("norm of the gradient\n");
  draw(norms, 64, 4);
  std::printf("weights sha256 %s\n", trainer.weights_sha256().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::run_on_threads(argc > 1 ? std::atoi(argv[1]) : 2, train);
}
