// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trains on its own arrays with its own layer and loss: two spirals, which no straight line separates.
///
///     ./own_arrays
///     mpirun -np 3 ./own_arrays
#include <lockstep/lockstep.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

/// The layer `- scale`: y = s x, with a trained s for each feature.
class Scale final : public lockstep::Layer {
 public:
  explicit Scale(const lockstep::ImageShape& input)
      : Layer(input, {{.name = "weight",
                       .shape = {input.features()},
                       .initial = lockstep::LayerParameter::Initial::kOnes}}) {}

  // Feature f of sample n is element f * columns + n: the inner loops are the compiler's to vectorise.
  void forward(const lockstep::ForwardPass& pass) const override {
    for (int f = 0; f < output().features(); ++f)
      for (int n = 0; n < pass.columns; ++n)
        pass.y[at(pass, f, n)] = pass.weights[f] * pass.x[at(pass, f, n)];
  }
  void backward_weights(const lockstep::BackwardPass& pass) const override {
    for (int f = 0; f < output().features(); ++f) {
      float sum = 0;  // always in this order, so always to the same bits
      for (int n = 0; n < pass.columns; ++n) sum += pass.dy[at(pass, f, n)] * pass.x[at(pass, f, n)];
      pass.gradients[f] = sum;
    }
  }
  void backward_data(const lockstep::BackwardPass& pass) const override {
    for (int f = 0; f < output().features(); ++f)
      for (int n = 0; n < pass.columns; ++n)
        pass.dx[at(pass, f, n)] = pass.weights[f] * pass.dy[at(pass, f, n)];
  }

 private:
  static int at(const lockstep::LayerPass& pass, int feature, int column) {
    return feature * pass.columns + column;
  }
};

/// The multi-class hinge loss: the label's output is to be larger by 1 than each of the others.
class Hinge final : public lockstep::OwnLoss {
 public:
  double compute(std::span<const float> outputs, std::int32_t label,
                 std::span<float> gradient) const override {
    const auto right = static_cast<std::size_t>(label);
    double loss = 0;
    for (std::size_t c = 0; c < outputs.size(); ++c) {
      const float short_of = 1 + outputs[c] - outputs[right];
      if (c == right || short_of <= 0) continue;
      loss += short_of;
      if (gradient.empty()) continue;  // evaluation needs none
      gradient[c] += 1;
      gradient[right] -= 1;
    }
    return loss;
  }
};

/// Points of spiral 0 and 1 in turns; `first` shifts them, so that two sets have none in common.
lockstep::Dataset make_spirals(int samples, float first) {
  std::vector<float> points;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < samples; ++i) {
    const float along = (first + static_cast<float>(i / 2)) / static_cast<float>(samples / 2);
    const float angle = 6 * along + 3.14159F * static_cast<float>(i % 2);
    points.insert(points.end(), {along * std::cos(angle), along * std::sin(angle)});
    labels.push_back(i % 2);
  }
  return lockstep::Dataset::from_floats({.channels = 2, .height = 1, .width = 1}, /*classes=*/2, points,
                                        labels);
}

int main(int argc, char** argv) {
  lockstep::Mpi mpi(argc, argv);
  const auto train = make_spirals(4000, 0), test = make_spirals(1000, 0.5F);

  const lockstep::LayerKind scale{
      .name = "scale", .make = [](const lockstep::ImageShape& input, const lockstep::LayerOptions&) {
        return std::make_unique<Scale>(input);
      }};
  const auto net = lockstep::Network::parse(
      "layers:\n"
      "  - linear: 64\n"
      "  - scale\n"  // ours
      "  - tanh\n"
      "  - linear: 32\n"
      "  - tanh\n"
      "  - linear: classes\n",
      train.shape(), train.classes(), {scale});

  lockstep::Trainer trainer(net, train, mpi.world(),
                            {.global_batch = 256,
                             .optimizer = lockstep::adam(0.01),
                             .schedule = lockstep::cosine(),
                             .epochs = 20,
                             .loss = lockstep::own_loss(std::make_shared<Hinge>())});
  for (int epoch = 0; epoch < 20; ++epoch) trainer.epoch();

  const auto found = trainer.evaluate(test);
  if (mpi.world().rank() != 0) return 0;
  std::printf("%.1f %% of the test points, hinge loss %.4f\n", 100 * found.accuracy, found.loss);
  std::printf("weights sha256 %s\n", trainer.weights_sha256().c_str());
}
