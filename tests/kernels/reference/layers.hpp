// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every layer's arithmetic as naive loops in double.
#pragma once

#include "kernels/shapes.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::reference {

// Layers with weights by naive loops in double precision: the oracle of their kernels.

/// Numbers in the input and in the output of a layer, and its outputs, each of which has a bias.
inline std::size_t input_size(const Conv2dShape& s) {
  return s.in_size();
}
inline std::size_t output_size(const Conv2dShape& s) {
  return s.out_size();
}
inline std::size_t outputs_of(const Conv2dShape& s) {
  return static_cast<std::size_t>(s.out_channels);
}

inline std::size_t input_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.in_features);
}
inline std::size_t output_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.out_features);
}
inline std::size_t outputs_of(const LinearShape& s) {
  return static_cast<std::size_t>(s.out_features);
}

/// Calls f(x index, w index, y index) for each product x * w of an output y that is read.
template <class F>
void for_each_product(const Conv2dShape& s, F f) {
  const auto at = [](std::size_t a, int size, int i) {
    return a * static_cast<std::size_t>(size) + static_cast<std::size_t>(i);
  };
  for (int k = 0; k < s.out_channels; ++k)
    for (int p = 0; p < s.read_height(); ++p)
      for (int q = 0; q < s.read_width(); ++q)
        for (int c = 0; c < s.group_inputs(); ++c)
          for (int r = 0; r < s.kernel_height; ++r)
            for (int t = 0; t < s.kernel_width; ++t) {
              const int h = p * s.stride - s.padding + r * s.dilation;
              const int w = q * s.stride - s.padding + t * s.dilation;
              if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
              const std::size_t weight =
                  at(at(at(k, s.group_inputs(), c), s.kernel_height, r), s.kernel_width, t);
              const auto channel = static_cast<std::size_t>(k / s.group_outputs() * s.group_inputs() + c);
              const std::size_t x = at(at(at(channel, s.in_height, h), s.in_width, w), s.batch, 0);
              const std::size_t y = at(at(at(k, s.out_height(), p), s.out_width(), q), s.batch, 0);
              for (std::size_t n = 0; n < static_cast<std::size_t>(s.batch); ++n) f(x + n, weight, y + n);
            }
}

template <class F>
void for_each_product(const LinearShape& s, F f) {
  const auto inputs = static_cast<std::size_t>(s.in_features),
             outputs = static_cast<std::size_t>(s.out_features);
  const auto batch = static_cast<std::size_t>(s.batch);
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t i = 0; i < inputs; ++i)
      for (std::size_t n = 0; n < batch; ++n) f(i * batch + n, o * inputs + i, o * batch + n);
}

template <class Shape>
Sums layer_forward(const Shape& s, const std::vector<double>& x, const std::vector<double>& w,
                   const std::vector<double>& b) {
  Sums y(output_size(s));
  const std::size_t plane = output_size(s) / b.size();
  for (std::size_t i = 0; i < y.value.size(); ++i) y.add(i, b[i / plane]);
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { y.add(yi, x[xi] * w[wi]); });
  return y;
}

template <class Shape>
Sums layer_backward_data(const Shape& s, const std::vector<double>& dy, const std::vector<double>& w) {
  Sums dx(input_size(s));
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dx.add(xi, dy[yi] * w[wi]); });
  return dx;
}

template <class Shape>
Sums layer_backward_weights(const Shape& s, const std::vector<double>& x, const std::vector<double>& dy) {
  Sums dw(s.weight_size());
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dw.add(wi, dy[yi] * x[xi]); });
  return dw;
}

template <class Shape>
Sums layer_backward_bias(const Shape& s, const std::vector<double>& dy) {
  Sums db(outputs_of(s));
  const std::size_t plane = dy.size() / db.value.size();
  for (std::size_t i = 0; i < dy.size(); ++i) db.add(i / plane, dy[i]);
  return db;
}

// Pooling by naive loops in double: the oracle of the kernels.

/// Calls body(y_index, tap, x_index) for every tap inside the image of every window, sample by sample.
template <class Body>
void for_each_pool_tap(const Pool2dShape& s, const Body& body) {
  for (int c = 0; c < s.channels; ++c)
    for (int p = 0; p < s.out_height(); ++p)
      for (int q = 0; q < s.out_width(); ++q)
        for (int tap = 0; tap < s.kernel * s.kernel; ++tap)
          for (int n = 0; n < s.batch; ++n) {
            const int h = p * s.stride - s.padding + tap / s.kernel;
            const int w = q * s.stride - s.padding + tap % s.kernel;
            if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
            const int y = ((c * s.out_height() + p) * s.out_width() + q) * s.batch + n;
            const int x = ((c * s.in_height + h) * s.in_width + w) * s.batch + n;
            body(static_cast<std::size_t>(y), tap, static_cast<std::size_t>(x));
          }
}

inline std::string describe(const Pool2dShape& s) {
  return fmt::format("batch {}, {} x {} x {}, kernel {}, stride {}, padding {}", s.batch, s.channels,
                     s.in_height, s.in_width, s.kernel, s.stride, s.padding);
}

struct MaxPooled {
  std::vector<double> y;
  std::vector<std::uint8_t> argmax;
};

inline MaxPooled max_pool_forward(const Pool2dShape& s, const std::vector<double>& x) {
  MaxPooled result{std::vector<double>(s.out_size()), std::vector<std::uint8_t>(s.out_size())};
  std::vector<bool> started(s.out_size());
  for_each_pool_tap(s, [&](std::size_t y, int tap, std::size_t from) {
    if (started[y] && !(x[from] > result.y[y]) && !std::isnan(x[from])) return;
    started[y] = true;
    result.y[y] = x[from];
    result.argmax[y] = static_cast<std::uint8_t>(tap);
  });
  return result;
}

inline std::vector<double> max_pool_backward(const Pool2dShape& s, const std::vector<double>& dy,
                                             const std::vector<std::uint8_t>& argmax) {
  std::vector<double> dx(s.in_size());
  for_each_pool_tap(s, [&](std::size_t y, int tap, std::size_t to) {
    if (argmax[y] == tap) dx[to] += dy[y];
  });
  return dx;
}

inline std::vector<double> avg_pool_forward(const Pool2dShape& s, const std::vector<double>& x) {
  std::vector<double> result(s.out_size());
  for_each_pool_tap(
      s, [&](std::size_t y, int, std::size_t from) { result[y] += x[from] / (s.kernel * s.kernel); });
  return result;
}

inline std::vector<double> avg_pool_backward(const Pool2dShape& s, const std::vector<double>& dy) {
  std::vector<double> dx(s.in_size());
  for_each_pool_tap(s, [&](std::size_t y, int, std::size_t to) { dx[to] += dy[y] / (s.kernel * s.kernel); });
  return dx;
}

// Log-softmax and cross-entropy by naive loops in double: the oracle of the kernels.

inline std::size_t logit_index(const LossShape& s, int c, int n) {
  return static_cast<std::size_t>(c) * static_cast<std::size_t>(s.batch) + static_cast<std::size_t>(n);
}

inline std::string describe(const LossShape& s) {
  return fmt::format("batch {}, samples {}, classes {}", s.batch, s.samples, s.classes);
}

inline std::vector<double> log_softmax(const LossShape& s, const std::vector<double>& logits) {
  std::vector<double> y(logits.size());
  for (int n = 0; n < s.batch; ++n) {
    double peak = logits[logit_index(s, 0, n)];
    for (int c = 1; c < s.classes; ++c) peak = std::max(peak, logits[logit_index(s, c, n)]);
    double sum = 0;
    for (int c = 0; c < s.classes; ++c) sum += std::exp(logits[logit_index(s, c, n)] - peak);
    for (int c = 0; c < s.classes; ++c)
      y[logit_index(s, c, n)] = logits[logit_index(s, c, n)] - peak - std::log(sum);
  }
  return y;
}

// Losses by their rule, target by target.

struct ReferenceLoss {
  double loss = 0;  ///< summed over the real samples
  std::int64_t correct = 0;
  std::vector<double> gradient;  ///< 0 in padding columns
};

/// Loss of one output against its target under the kinds that look at each by itself.
inline double output_loss(LossKind kind, double x, double target) {
  if (kind == LossKind::kMeanSquares) return (x - target) * (x - target);
  const auto log_of_share = [](double z) {
    return z > 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z));
  };
  return -target * log_of_share(x) - (1 - target) * log_of_share(-x);
}

/// True if a sample's label is the first of its largest outputs, or its labels are the positive outputs.
inline bool is_correct(const LossShape& s, const std::vector<double>& x, std::int32_t label, int n) {
  int best = 0;
  bool is_set = true;
  for (int c = 0; c < s.classes; ++c) {
    const double output = x[logit_index(s, c, n)];
    if (output > x[logit_index(s, best, n)]) best = c;
    if (s.rule.label_sets != nullptr)
      is_set = is_set && (output > 0) == (s.rule.label_sets[label * s.classes + c] != 0);
  }
  return s.rule.label_sets != nullptr ? is_set : best == label;
}

inline ReferenceLoss loss_by_rule(const LossShape& s, const std::vector<double>& x,
                                  const std::vector<std::int32_t>& labels) {
  const LossRule& rule = s.rule;
  const std::vector<double> log_shares = log_softmax(s, x);
  ReferenceLoss result{.gradient = std::vector<double>(x.size())};
  const auto weight = [&](int c) {
    return rule.class_weights == nullptr ? 1.0 : double{rule.class_weights[c]};
  };
  for (int n = 0; n < s.samples; ++n) {
    const std::int32_t label = labels[static_cast<std::size_t>(n)];
    result.correct += is_correct(s, x, label, n) ? 1 : 0;
    std::vector<double> targets;
    double all = 0;
    for (int c = 0; c < s.classes; ++c) {
      const double second = s.mixed != nullptr ? double{s.mixed[n].share} : 0;
      double share = c == label ? 1 - second : 0;
      if (s.mixed != nullptr && c == s.mixed[n].label) share += second;
      if (rule.label_sets != nullptr) share = rule.label_sets[label * s.classes + c];
      targets.push_back(double{rule.spread} + double{rule.label_share} * share);
      all += weight(c) * targets.back();
    }
    for (int c = 0; c < s.classes; ++c) {
      const std::size_t i = logit_index(s, c, n);
      const double target = targets[static_cast<std::size_t>(c)], share = 1.0 / s.classes;
      if (rule.kind == LossKind::kCrossEntropy) {
        if (target != 0) result.loss -= double{rule.scale} * weight(c) * target * log_shares[i];
        result.gradient[i] = double{rule.scale} * (all * std::exp(log_shares[i]) - weight(c) * target);
      } else {
        result.loss += share * output_loss(rule.kind, x[i], target);
        const double slope =
            rule.kind == LossKind::kMeanSquares ? 2 * (x[i] - target) : 1 / (1 + std::exp(-x[i])) - target;
        result.gradient[i] = share * slope;
      }
    }
  }
  return result;
}

/// Rules to try kernels on. Weights of classes are borrowed.
struct TriedRule {
  std::string name;
  LossRule rule;
};

inline constexpr int kTriedLabelSets = 7;

/// Rows for LossRule::label_sets: all classes, none, and others.
inline std::vector<std::uint8_t> tried_label_sets(int classes) {
  std::mt19937 engine(27);
  std::vector<std::uint8_t> sets(static_cast<std::size_t>(kTriedLabelSets * classes));
  for (std::uint8_t& flag : sets) flag = engine() % 3 == 0 ? 1 : 0;
  std::fill_n(sets.begin(), classes, std::uint8_t{1});
  std::fill_n(sets.begin() + classes, classes, std::uint8_t{0});
  return sets;
}

/// @param weights  [classes]
inline std::vector<TriedRule> tried_rules(int classes, const std::vector<float>& weights) {
  const float smoothing = 0.1F, spread = smoothing / static_cast<float>(classes);
  float sum = 0;
  for (const float weight : weights) sum += weight;
  return {{"plain", {}},
          {"smoothed", {.label_share = 1 - smoothing, .spread = spread}},
          {"weights", {.class_weights = weights.data(), .weight_sum = sum, .scale = 0.75F}},
          {"smoothed, with weights",
           {.label_share = 1 - smoothing,
            .spread = spread,
            .class_weights = weights.data(),
            .weight_sum = sum,
            .scale = 1.25F}},
          {"mean squares", {.kind = LossKind::kMeanSquares}},
          {"mean squares, smoothed",
           {.kind = LossKind::kMeanSquares, .label_share = 1 - smoothing, .spread = spread}},
          {"binary", {.kind = LossKind::kBinaryCrossEntropy}},
          {"binary, smoothed",
           {.kind = LossKind::kBinaryCrossEntropy, .label_share = 1 - smoothing, .spread = spread}}};
}

/// Second labels of so many samples: of some none, of some the first one again, if there are few classes.
inline std::vector<MixedLabel> tried_second_labels(int samples, int classes) {
  std::vector<MixedLabel> second;
  for (int n = 0; n < samples; ++n)
    second.push_back({(5 * n + 3) % classes, n % 4 == 0 ? 0.0F : static_cast<float>(n % 33) / 64.0F});
  return second;
}

/// One weighs nothing, if there are several.
inline std::vector<float> tried_weights(int classes) {
  std::vector<float> weights;
  for (int c = 0; c < classes; ++c)
    weights.push_back(c == 1 ? 0.0F : 0.3F + 0.37F * static_cast<float>(c % 7));
  return weights;
}

/// Calls use(name, shape) for each loss that kernels are tried on. Every rule, those of the cross-entropy
/// with second labels, too, and sets of labels.
template <typename Use>
void for_each_loss(LossShape shape, const Use& use) {
  const std::vector<float> weights = tried_weights(shape.classes);
  const auto second = tried_second_labels(shape.samples, shape.classes);
  const auto sets = tried_label_sets(shape.classes);
  for (const auto& [name, rule] : tried_rules(shape.classes, weights)) {
    shape.rule = rule;
    shape.mixed = nullptr;
    use(name, shape);
    if (rule.kind != LossKind::kCrossEntropy) continue;
    shape.mixed = second.data();
    use(name + ", two labels", shape);
  }
  shape.mixed = nullptr;
  shape.rule = {.kind = LossKind::kBinaryCrossEntropy, .label_sets = sets.data()};
  use("sets of labels", shape);
}

/// Below what number labels are: rows of a table of sets, or classes.
inline int label_count(const LossShape& s) {
  return s.rule.label_sets != nullptr ? kTriedLabelSets : s.classes;
}

// Activations with a curve in double, and numbers to try them on.

struct TriedActivation {
  ActivationFunction function;
  const char* name;
  double units;  ///< tolerance in units of the last place
};

inline constexpr TriedActivation kActivations[] = {{Activation::kTanh, "tanh", 4},
                                                   {Activation::kSigmoid, "sigmoid", 4},
                                                   {Activation::kGelu, "gelu", 6},
                                                   {Activation::kGeluTanh, "gelu by tanh", 6},
                                                   {{Activation::kLeakyRelu, 0.25F}, "leaky_relu 0.25", 1},
                                                   {{Activation::kLeakyRelu, 0}, "leaky_relu 0", 1},
                                                   {{Activation::kElu, 1}, "elu 1", 6},
                                                   {{Activation::kElu, 0.7F}, "elu 0.7", 6},
                                                   {Activation::kSilu, "silu", 5},
                                                   {Activation::kHardSigmoid, "hardsigmoid", 3},
                                                   {Activation::kHardSwish, "hardswish", 4},
                                                   {Activation::kRelu6, "relu6", 0}};

struct Curve {
  double value, slope;
  double condition =
      1;  ///< by how much more than itself an argument's own rounding moves the value, at least 1
};

inline Curve curve_of(const ActivationFunction& f, double x) {
  const double number = f.number;
  switch (f.kind) {
    case Activation::kTanh: {
      const double y = std::tanh(x), c = std::cosh(std::min(std::abs(x), 300.0));
      return {y, 1 / (c * c)};
    }
    case Activation::kSigmoid: {
      const double y = x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
      return {y, y * (1 / (1 + std::exp(x)))};
    }
    case Activation::kRelu6:
      return {std::clamp(x, 0.0, 6.0), x > 0 && x < 6 ? 1.0 : 0.0};
    case Activation::kGelu: {
      const double below = std::erfc(-x / std::sqrt(2.0)) / 2,
                   density = 0.3989422804014327 * std::exp(-x * x / 2);
      // A denormal share has lost digits, and x makes its last unit that much larger.
      const bool denormal = below < 1.2e-38;
      return {x * below, below + (density > 0 ? x * density : 0), denormal ? std::max(1.0, -x) : 1};
    }
    case Activation::kGeluTanh: {
      const double u = 1.5957691216057308 * (x + 0.044715 * x * x * x);
      const Curve logistic = curve_of(Activation::kSigmoid, u);
      const double inner = 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
      return {x * logistic.value, logistic.value + (logistic.slope > 0 ? x * logistic.slope * inner : 0),
              std::max(1.0, u < 0 ? -u : 0)};
    }
    case Activation::kLeakyRelu:
      return {x > 0 ? x : number * x, x > 0 ? 1 : number};
    case Activation::kElu:
      return {x > 0 ? x : number * std::expm1(x), x > 0 ? 1 : number * std::exp(x)};
    case Activation::kSilu: {
      const Curve logistic = curve_of(Activation::kSigmoid, x);
      const bool denormal = logistic.value < 1.2e-38;  // as of gelu
      return {x * logistic.value, logistic.value + (logistic.slope > 0 ? x * logistic.slope : 0),
              denormal ? std::max(1.0, -x) : 1};
    }
    // x + 3 is rounded, and near -3 little is left of it.
    case Activation::kHardSigmoid: {
      const double y = std::clamp(x + 3, 0.0, 6.0) / 6;
      return {y, y > 0 && y < 1 ? 1.0 / 6 : 0};
    }
    case Activation::kHardSwish:
      return {x * std::clamp(x + 3, 0.0, 6.0) / 6, x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1};
  }
  return {};
}

/// Numbers of both signs and of every size: most between 2^-20 and 2^7, some denormal, some huge.
inline std::vector<float> spread_numbers(std::size_t count) {
  std::vector<float> numbers(count);
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const std::uint32_t mantissa = state >> 9 & 0x007FFFFFU, sign = state & 0x80000000U;
    const std::uint32_t exponent = i % 16 == 0 ? state % 255U : 107U + static_cast<std::uint32_t>(i % 27);
    numbers[i] = std::bit_cast<float>(sign | exponent << 23 | mantissa);
  }
  return numbers;
}

}  // namespace lockstep::reference
