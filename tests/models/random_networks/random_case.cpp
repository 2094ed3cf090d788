// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/models/random_networks/random_case.hpp"

#include "models/layer_options.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

namespace {

ImageShape random_shape(Dice& dice) {
  const int channels = dice.between(1, 5);
  if (dice.chance(0.1)) return {dice.between(1, 40), 1, 1};
  if (dice.chance(0.2)) return {channels, dice.between(1, 15), dice.between(1, 15)};
  const int height = dice.between(4, 15);
  return {channels, height, std::clamp(height + dice.between(-4, 4), 1, 15)};
}

Dataset random_dataset(Dice& dice, const ImageShape& shape, int classes, int samples, bool as_bytes) {
  Dataset set;
  set.name = "random";
  set.shape = shape;
  set.classes = classes;
  for (int i = 0; i < samples; ++i) set.labels.push_back(dice.between(0, classes - 1));
  const auto size = static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(samples);
  if (as_bytes) {
    set.images = AlignedBuffer<std::uint8_t>(size);
    for (auto& pixel : set.images.span()) pixel = static_cast<std::uint8_t>(dice.between(0, 255));
    for (int c = 0; c < shape.channels; ++c) {
      const float deviation = 0.29F + 0.02F * static_cast<float>(c);
      set.scales.scale.push_back(1.0F / (255.0F * deviation));
      set.scales.shift.push_back(-0.5F / deviation);
    }
  } else {
    set.features = AlignedBuffer<float>(size);
    for (auto& feature : set.features.span()) feature = dice.uniform(-1.7F, 1.7F);
  }
  return set;
}

/// Small batches and small grains are as likely as large ones.
int random_count(Dice& dice, int most) {
  return dice.between(1, dice.one_of({std::min(4, most), std::min(20, most), most}));
}

Job random_job(Dice& dice, std::uint64_t seed) {
  Job job;
  job.data.global_batch = random_count(dice, 100);
  job.data.shuffle = dice.chance(0.8);
  job.train.seed = seed * 7919 + 1;
  job.train.optimizer = {.kind = "sgd",
                         .lr = dice.one_of({0.01, 0.1, 0.5}),
                         .momentum = dice.one_of({0.1, 0.5, 0.9}),
                         .weight_decay = dice.chance(0.3) ? 0.01 : 0.0,
                         .nesterov = dice.chance(0.3)};
  job.parallel.grain = random_count(dice, 70);
  job.parallel.threads = dice.between(1, 2);
  job.parallel.bucket_bytes = dice.one_of<std::size_t>({4, 4096, std::size_t{1} << 20});
  job.parallel.determinism = dice.chance(0.15) ? Determinism::kOff : Determinism::kWorld;
  return job;
}

}  // namespace

RandomCase make_random_case(std::uint64_t seed) {
  Dice dice(seed);
  RandomCase result;
  result.seed = seed;
  const ImageShape shape = random_shape(dice);
  const int classes = dice.between(2, 12);
  result.yaml = random_layers(dice, shape, classes);
  result.job = random_job(dice, seed);
  // One number has no variance, and the difference of two says little beside its rounding.
  const bool looks_at_batch = result.yaml.find("batch_norm") != std::string::npos;
  const int least = looks_at_batch ? 6 : 1;
  result.job.data.global_batch = std::max<std::int64_t>(result.job.data.global_batch, least);
  const int batch = static_cast<int>(result.job.data.global_batch);
  const int grains = (batch + result.job.parallel.grain - 1) / result.job.parallel.grain;
  result.ranks = dice.chance(0.3) ? dice.between(1, std::min(3, grains)) : 1;

  const bool as_bytes = dice.chance(0.5);
  auto data = std::make_shared<TrainTestData>();
  data->train = random_dataset(dice, shape, classes, batch + dice.between(least, batch), as_bytes);
  data->test = random_dataset(dice, shape, classes, random_count(dice, 100), as_bytes);
  data->origin = "made in memory";
  result.data = std::move(data);
  return result;
}

std::string RandomCase::describe() const {
  const Dataset& train = data->train;
  return fmt::format(
      "{}# seed {}: input {}x{}x{} of {}, {} classes, batch {} and {}, grain {}, {} ranks, {} threads, "
      "buckets of "
      "{}, determinism {}, lr {}, momentum {}, weight decay {}{}\n",
      yaml, seed, train.shape.channels, train.shape.height, train.shape.width,
      train.images.size() > 0 ? "bytes" : "fp32", train.classes, job.data.global_batch,
      train.size() - job.data.global_batch, job.parallel.grain, ranks, job.parallel.threads,
      job.parallel.bucket_bytes, spelt(job.parallel.determinism), job.train.optimizer.lr,
      job.train.optimizer.momentum, job.train.optimizer.weight_decay,
      job.train.optimizer.nesterov ? ", nesterov" : "");
}

namespace {

constexpr int kMostLayers = 8;
constexpr int kMostFeatures = 1500;      ///< per tensor
constexpr double kMostProducts = 60000;  ///< per layer and sample

class Writer {
 public:
  Writer(Dice& dice, const ImageShape& input, int classes) : dice_(dice), shape_(input), classes_(classes) {}

  std::string write() {
    text_ = dice_.chance(0.2) ? "init: {normal: 0.2}\nlayers:\n" : "layers:\n";
    const int count = dice_.between(1, kMostLayers);
    for (int tries = 0; tries < 3 * count && layers_ + 1 < count; ++tries) add_layer();
    add_end();
    return text_;
  }

 private:
  struct Output {
    std::string name;
    ImageShape shape;
  };

  void add(const std::string& layer) {
    remember_shape();
    text_ += "  - " + layer + "\n";
    const std::string_view kind = std::string_view(layer).substr(0, layer.find(':'));
    const std::string base(std::ranges::find(layer_catalogue(), kind, &LayerKind::kind)->default_name);
    outputs_.push_back({fmt::format("{}{}", base, ++layers_of_a_name_[base]), {}});
    ++layers_;
  }

  /// Remembers the shape of the last layer, which is known when the next one is added.
  void remember_shape() {
    if (!outputs_.empty()) outputs_.back().shape = shape_;
  }

  static bool is_vector(const ImageShape& shape) { return shape.height == 1 && shape.width == 1; }

  /// Any earlier output whose shape fits; null: none does.
  const Output* any_of(const auto& fits) {
    remember_shape();
    std::vector<const Output*> fitting;
    for (const Output& output : outputs_)
      if (fits(output.shape)) fitting.push_back(&output);
    return fitting.empty() ? nullptr : dice_.one_of(fitting);
  }

  /// The sum with any earlier output of this shape.
  void add_branch() {
    const Output* from = any_of([&](const ImageShape& shape) { return shape == shape_; });
    if (from == nullptr) return;
    add(dice_.chance(0.5) ? "add: " + from->name : fmt::format("add: {{from: {}}}", from->name));
  }

  /// The product with any earlier output that has this shape or these channels, where one of both is a vector.
  void add_gate() {
    const Output* from = any_of([&](const ImageShape& shape) {
      return shape == shape_ ||
             (shape.channels == shape_.channels && (is_vector(shape) || is_vector(shape_)));
    });
    if (from == nullptr) return;
    const ImageShape shape = is_vector(shape_) ? from->shape : shape_;
    add("multiply: " + from->name);
    shape_ = shape;
  }

  /// With the channels of any earlier output of this height and width.
  void add_concat() {
    const Output* from = any_of([&](const ImageShape& shape) {
      return shape.height == shape_.height && shape.width == shape_.width &&
             shape.features() + shape_.features() <= kMostFeatures;
    });
    if (from == nullptr) return;
    const int channels = from->shape.channels;
    add("concat: " + from->name);
    shape_.channels += channels;
  }

  /// From any earlier output on.
  void add_route() {
    const Output* from = any_of([](const ImageShape& /*shape*/) { return true; });
    if (from == nullptr) return;
    const ImageShape shape = from->shape;
    add("route: " + from->name);
    shape_ = shape;
  }

  void add_batch_norm() {
    if (dice_.chance(0.5)) return add("batch_norm");
    add(fmt::format("batch_norm: {{eps: {}, momentum: {}, affine: {}}}", dice_.one_of({1e-5, 1e-3, 0.1}),
                    dice_.one_of({0.0, 0.1, 1.0}), dice_.chance(0.5)));
  }

  void add_curve() {
    const int kind = dice_.between(0, 4);
    if (kind == 0) return add(fmt::format("leaky_relu: {}", dice_.one_of({0.0, 0.01, 0.2, 1.0})));
    if (kind == 1) return add(dice_.chance(0.5) ? "elu" : "elu: {alpha: 0.3}");
    add(kind == 2 ? "silu" : kind == 3 ? "hardsigmoid" : "hardswish");
  }

  /// Adds a layer of any kind; none, if the dice fall on one that does not fit.
  void add_layer() {
    const std::vector<std::pair<int, std::function<void()>>> kinds = {
        {3, [&] { add_conv(dice_.between(1, 12)); }},
        {2, [&] { add_pool("max_pool"); }},
        {1, [&] { add_pool("avg_pool"); }},
        {2, [&] { add(dice_.chance(0.3) ? "relu6" : "relu"); }},
        {1, [&] { add_dropout("dropout"); }},
        {1, [&] { add_dropout("dropout2d"); }},
        {1, [&] { add_flatten(); }},
        {1, [&] { add("tanh"); }},
        {1, [&] { add("sigmoid"); }},
        {1, [&] { add_global_pool(); }},
        {3, [&] { add_branch(); }},
        {1, [&] { add(dice_.chance(0.5) ? "gelu" : "gelu: {approximate: tanh}"); }},
        {2, [&] { add_linear(); }},
        {1, [&] { add_route(); }},
        {2, [&] { add_curve(); }},
        {1, [&] { add_gate(); }},
        {1, [&] { add_concat(); }},
        {1, [&] { add_adaptive_pool(); }},
        {2, [&] { add_group_norm(); }},
        {2, [&] { add_conv_transpose(dice_.between(1, 8)); }},
        {3, [&] { add_batch_norm(); }}};
    int number = dice_.between(0, 32);
    for (const auto& [share, make] : kinds)
      if ((number -= share) < 0) return make();
  }

  /// Logits: as many as classes, of both signs.
  void add_end() {
    if (is_vector(shape_) && dice_.chance(0.3)) {
      add("conv2d: {out: classes, kernel: 1}");
    } else if (dice_.chance(0.15)) {
      add(fmt::format("conv2d: {{out: classes, kernel: [{}, {}]}}", shape_.height, shape_.width));
    } else {
      add("linear: classes");
    }
    shape_ = {classes_, 1, 1};
    if (dice_.chance(0.1)) add_dropout("dropout");
    if (dice_.chance(0.1)) add_branch();
    if (dice_.chance(0.1)) add_flatten();
    if (dice_.chance(0.05)) add("avg_pool: {kernel: 1}");
  }

  void add_conv(int outputs) {
    const bool is_square = dice_.chance(0.5);
    const int most = dice_.chance(0.1) ? 9 : 5;
    int height = is_square ? dice_.one_of({1, 3, 3, 5, 5, 2, 4}) : dice_.between(1, most);
    int width = is_square ? height : dice_.between(1, most);
    const int padding = dice_.chance(0.4) ? dice_.between(0, std::min(height, width) - 1) : 0;
    height = std::min(height, shape_.height + 2 * padding);
    width = std::min(width, shape_.width + 2 * padding);
    const int allowed = std::min(padding, std::min(height, width) - 1);
    Conv2dShape shape{1,       shape_.channels, shape_.height, shape_.width,
                      outputs, height,          width,         dice_.chance(0.3) ? dice_.between(2, 3) : 1,
                      allowed};
    if (height > shape_.height + 2 * allowed || width > shape_.width + 2 * allowed) return;
    const auto is_too_much = [&] {
      return shape.flops() / 2 > kMostProducts || shape.out_size() > kMostFeatures;
    };
    while (shape.out_channels > 1 && is_too_much()) --shape.out_channels;
    if (is_too_much()) return;
    shape.groups = random_groups(shape);
    shape.dilation = random_dilation(shape);
    add(fmt::format(
        "conv2d: {{out: {}, kernel: [{}, {}], stride: {}, padding: {}, groups: {}, dilation: {}, bias: {}}}",
        shape.out_channels, height, width, shape.stride, allowed, shape.groups, shape.dilation,
        !dice_.chance(0.3)));
    shape_ = {shape.out_channels, shape.out_height(), shape.out_width()};
  }

  /// As a convolution from its output to its input.
  void add_conv_transpose(int outputs) {
    Conv2dShape shape;
    shape.batch = 1;
    shape.in_channels = outputs;
    shape.out_channels = shape_.channels;
    shape.kernel_height = dice_.between(1, 5);
    shape.kernel_width = dice_.chance(0.6) ? shape.kernel_height : dice_.between(1, 5);
    shape.stride = dice_.chance(0.6) ? dice_.between(2, 3) : 1;
    shape.dilation = dice_.chance(0.3) ? dice_.between(2, 3) : 1;
    if (dice_.chance(0.5))
      shape.padding = dice_.between(0, std::min(shape.reach_height(), shape.reach_width()) - 1);
    const int output_padding = dice_.chance(0.4) ? dice_.between(0, shape.stride - 1) : 0;
    const int more = output_padding - 2 * shape.padding;
    shape.in_height = (shape_.height - 1) * shape.stride + shape.reach_height() + more;
    shape.in_width = (shape_.width - 1) * shape.stride + shape.reach_width() + more;
    if (shape.in_height < 1 || shape.in_width < 1) return;
    const auto is_too_much = [&] {
      return shape.flops() / 2 > kMostProducts || shape.in_size() > kMostFeatures;
    };
    while (shape.in_channels > 1 && is_too_much()) --shape.in_channels;
    if (is_too_much()) return;
    shape.groups = random_groups(shape);
    add(fmt::format(
        "conv_transpose2d: {{out: {}, kernel: [{}, {}], stride: {}, padding: {}, output_padding: {}, "
        "groups: {}, dilation: {}, bias: {}}}",
        shape.in_channels, shape.kernel_height, shape.kernel_width, shape.stride, shape.padding,
        output_padding, shape.groups, shape.dilation, !dice_.chance(0.3)));
    shape_ = {shape.in_channels, shape.in_height, shape.in_width};
  }

  /// Any common divisor of the channels of both sides.
  int random_groups(const Conv2dShape& shape) {
    if (!dice_.chance(0.4)) return 1;
    const int most = std::gcd(shape.in_channels, shape.out_channels);
    int groups = dice_.between(1, most);
    while (most % groups != 0) ++groups;
    return groups;
  }
  /// As far as the taps still fit the image.
  int random_dilation(Conv2dShape shape) {
    if (!dice_.chance(0.3)) return 1;
    for (shape.dilation = dice_.between(2, 4); shape.dilation > 1; --shape.dilation)
      if (shape.reach_height() <= shape.in_height + 2 * shape.padding &&
          shape.reach_width() <= shape.in_width + 2 * shape.padding)
        break;
    return shape.dilation;
  }

  void add_pool(const char* kind) {
    const bool is_usual = dice_.chance(0.6);
    Pool2dShape shape{1, shape_.channels, shape_.height, shape_.width, 2, 2, 0};
    if (!is_usual) {
      shape.kernel = dice_.chance(0.1) ? dice_.between(5, 15) : dice_.between(1, 4);
      shape.padding = dice_.between(0, shape.kernel / 2);
      shape.stride = dice_.between(1, 4);
    }
    if (shape.kernel > std::min(shape.in_height, shape.in_width) + 2 * shape.padding) return;
    if (shape.out_size() > kMostFeatures) return;
    add(fmt::format("{}: {{kernel: {}, stride: {}, padding: {}}}", kind, shape.kernel, shape.stride,
                    shape.padding));
    shape_ = {shape.channels, shape.out_height(), shape.out_width()};
  }

  void add_dropout(const char* kind) {
    add(fmt::format("{}: {}", kind, dice_.one_of({0.0, 0.1, 0.25, 0.5, 0.5, 0.9})));
  }

  void add_adaptive_pool() {
    const int side = dice_.between(1, 9);
    if (shape_.channels * side * side > kMostFeatures) return;
    add(fmt::format("adaptive_avg_pool: {}", side));
    shape_ = {shape_.channels, side, side};
  }

  /// Not of few numbers: the difference of two says little beside its rounding.
  void add_group_norm() {
    std::vector<int> divisors;
    for (int groups = 1; groups <= shape_.channels; ++groups)
      if (shape_.channels % groups == 0 && shape_.features() / groups >= 6) divisors.push_back(groups);
    if (divisors.empty()) return;
    const int groups = dice_.one_of(divisors);
    const bool affine = dice_.chance(0.7);
    const double eps = dice_.one_of({1e-5, 1e-3, 0.1});
    if (dice_.chance(0.4)) return add(fmt::format("layer_norm: {{eps: {}, affine: {}}}", eps, affine));
    add(fmt::format("group_norm: {{groups: {}, eps: {}, affine: {}}}", groups, eps, affine));
  }

  void add_global_pool() {
    add("global_avg_pool");
    shape_ = {shape_.channels, 1, 1};
  }

  void add_flatten() {
    add("flatten");
    shape_ = {static_cast<int>(shape_.features()), 1, 1};
  }

  void add_linear() {
    const int outputs = dice_.between(1, 40);
    add(dice_.chance(0.3) ? fmt::format("linear: {{out: {}, bias: false}}", outputs)
                          : fmt::format("linear: {}", outputs));
    shape_ = {outputs, 1, 1};
  }

  Dice& dice_;
  ImageShape shape_;
  int classes_;
  std::string text_;
  int layers_ = 0;
  std::vector<Output> outputs_;                  ///< one for each layer so far
  std::map<std::string, int> layers_of_a_name_;  ///< as the builder counts them
};

}  // namespace

std::string random_layers(Dice& dice, const ImageShape& input, int classes) {
  return Writer(dice, input, classes).write();
}

}  // namespace lockstep::test
