// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "models/layer.hpp"
#include "tests/models/random_networks/reference_layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {
namespace {

class Pass {
 public:
  Pass(const Network& network, std::span<const float> weights, const Batch& batch, const PassKey* key)
      : network_(network), weights_(weights), batch_(batch), key_(key) {}

  ReferenceStep run() {
    forward();
    Bounded gradient = loss();
    if (key_ != nullptr) backward(std::move(gradient));
    return std::move(step_);
  }

 private:
  LayerContext context_of(const Layer& layer) const {
    LayerContext context;
    context.weights = weights_.subspan(layer.parameter_offset(), layer.parameter_size());
    context.kept = weights_.subspan(network_.parameters().size + layer.kept_offset());
    context.batch = batch_.samples();
    context.training = key_ != nullptr;
    if (key_ != nullptr) context.dropout = {key_->seed, key_->step, 0, key_->first_sample};
    if (const auto from = layer.branch()) context.branch = &activations_[*from + 1];
    context.channels = layer.input().channels;
    context.features = layer.input().features();
    return context;
  }

  void forward() {
    Bounded input(batch_.x.size());
    input.value = batch_.x;
    activations_.push_back(std::move(input));
    for (const auto& layer : network_.layers()) {
      activations_.push_back(layer_forward(layer->op(), context_of(*layer), activations_.back()));
    }
  }

  /// Softmax and cross-entropy; the gradient of the logits.
  Bounded loss() {
    const Bounded& logits = activations_.back();
    Bounded gradient(logits.size());
    double variance = 0;
    for (std::size_t n = 0; n < batch_.labels.size(); ++n) variance += loss_of_sample(n, logits, gradient);
    step_.loss_allowed = Bounded::kSigmas * std::sqrt(variance);
    return gradient;
  }

  /// @returns the variance of its loss
  double loss_of_sample(std::size_t n, const Bounded& logits, Bounded& gradient) {
    const auto classes = static_cast<std::size_t>(network_.classes());
    const auto at = [&](std::size_t c) { return c * batch_.labels.size() + n; };
    const auto label = static_cast<std::size_t>(batch_.labels[n]);
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) best = logits.value[at(c)] > logits.value[at(best)] ? c : best;
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits.value[at(c)] - logits.value[at(best)]);
    step_.loss += logits.value[at(best)] + std::log(sum) - logits.value[at(label)];
    count_correct(n, logits, best, label);

    // exp and log of fp32 are good to a few units; their arguments were rounded too.
    const double spread = logits.value[at(best)] - logits.value[at(label)];
    const double own = 8 * Bounded::kUnit * (1 + spread + std::log(sum));
    double variance = own * own;
    std::vector<double> p(classes);
    double common = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      p[c] = std::exp(logits.value[at(c)] - logits.value[at(best)]) / sum;
      common += p[c] * p[c] * logits.variance[at(c)];
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const double hit = c == label ? 1 : 0, distance = logits.value[at(best)] - logits.value[at(c)];
      variance += (p[c] - hit) * (p[c] - hit) * logits.variance[at(c)];
      gradient.value[at(c)] = p[c] - hit;
      const double rounding = 8 * Bounded::kUnit * (p[c] * (1 + distance) + hit);
      gradient.variance[at(c)] = p[c] * p[c] * (common + logits.variance[at(c)]) + rounding * rounding;
    }
    return variance;
  }

  void count_correct(std::size_t n, const Bounded& logits, std::size_t best, std::size_t label) {
    const auto at = [&](std::size_t c) { return c * batch_.labels.size() + n; };
    const auto may_beat = [&](std::size_t a, std::size_t b) {
      const double sigma = std::sqrt(logits.variance[at(a)]) + std::sqrt(logits.variance[at(b)]);
      return sigma > 0 && logits.value[at(b)] - logits.value[at(a)] <= Bounded::kSigmas * sigma;
    };
    bool sure = best == label, possible = best == label || may_beat(label, best);
    for (std::size_t c = 0; c < static_cast<std::size_t>(network_.classes()); ++c)
      sure = sure && (c == label || !may_beat(c, label));
    step_.least_correct += sure ? 1 : 0;
    step_.most_correct += possible ? 1 : 0;
  }

  void backward(Bounded gradient) {
    step_.gradients = Bounded(network_.parameters().size);
    std::vector<std::optional<Bounded>> branches(network_.layers().size());  // gradients that they bring
    for (std::size_t i = network_.layers().size(); i-- > 0;) {
      const Layer& layer = *network_.layers()[i];
      const LayerContext context = context_of(layer);
      if (branches[i]) gradient = sum(gradient, *branches[i]);
      if (const auto from = layer.branch()) {
        Bounded part = branch_gradient(layer.op(), context, activations_[i], gradient);
        branches[*from] = branches[*from] ? sum(*branches[*from], part) : std::move(part);
      }
      put(weight_gradient(layer.op(), context, activations_[i], gradient), layer.parameter_offset());
      gradient = layer_backward(layer.op(), context, activations_[i], gradient, step_.ties);
    }
  }

  void put(const Bounded& part, std::size_t offset) {
    for (const auto numbers : {&Bounded::value, &Bounded::variance, &Bounded::tie})
      std::ranges::copy(part.*numbers,
                        (step_.gradients.*numbers).begin() + static_cast<std::ptrdiff_t>(offset));
  }

  const Network& network_;
  std::span<const float> weights_;
  const Batch& batch_;
  const PassKey* key_;                ///< null: evaluation
  std::vector<Bounded> activations_;  ///< the input, then each layer's output
  ReferenceStep step_;
};

}  // namespace

ReferenceStep reference_training(const Network& network, std::span<const float> weights, const Batch& batch,
                                 const PassKey& key) {
  return Pass(network, weights, batch, &key).run();
}

ReferenceStep reference_evaluation(const Network& network, std::span<const float> weights,
                                   const Batch& batch) {
  return Pass(network, weights, batch, nullptr).run();
}

}  // namespace lockstep::test
