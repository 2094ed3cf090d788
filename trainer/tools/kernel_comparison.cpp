// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// For each kind of op: its memory, in several copies where caches must not help, and the calls of both contenders.
#include "kernels/numerics/sums.hpp"
#include "trainer/tools/kernel_cases.hpp"

#include <algorithm>

namespace lockstep::bench {
namespace {

constexpr int kImages = 60000;  // of the data set that a batch is gathered from, as MNIST
const ExactFormat kFormat = exact_format(64);

std::size_t size_of(const ImageShape& image, int batch) {
  return static_cast<std::size_t>(image.features()) * static_cast<std::size_t>(batch);
}

unsigned masks_below(int pool) {
  return 1U << (pool * pool);
}

/// A tensor in several copies, of which a call uses the next one.
template <typename T>
class Rotation {
 public:
  explicit Rotation(std::vector<T*> copies) : copies_(std::move(copies)) {}
  T* operator()(int call) const { return copies_[static_cast<std::size_t>(call) % copies_.size()]; }

 private:
  std::vector<T*> copies_;
};

/// Makes the comparison for each kind of op.
class Builder {
 public:
  Builder(int batch, int grain, int sets, const ComparedOps& compared, BenchMemory& memory)
      : batch_(batch), grain_(grain), sets_(sets), compared_(compared), memory_(memory) {}

  KernelComparison operator()(const GatherOp& op) {
    const int samples = std::max(batch_, sets_ > 1 ? kImages : 1);
    const auto count = static_cast<std::size_t>(samples);
    const DeviceDataset dataset{.images = memory_.bytes(size_of({op.features, 1, 1}, samples), 256),
                                .labels = memory_.labels(count, 10),
                                .features = op.features,
                                .scale = 0.01F,
                                .shift = -0.4F};
    const std::int32_t* order = memory_.labels(count, samples);
    std::int32_t* labels = memory_.labels(static_cast<std::size_t>(batch_), 10);
    const auto x = floats(size_of({op.features, 1, 1}, batch_));
    return native([=, batch = batch_](DeviceOps& ops, Stream& stream, int call) {
      const std::int64_t first = std::int64_t{call} * batch % (samples - batch + 1);
      ops.gather(stream, batch, dataset, {.order = order, .first = first}, x(call), labels);
    });
  }

  KernelComparison operator()(const ForwardOp& op) {
    const Stage& stage = op.stage;
    const auto x = floats(size_of(stage.input, batch_));
    const auto y = floats(size_of(stage.before_epilogue, batch_));  // what the library alone makes
    const auto mask = masks(stage), saved = saved_by(stage);
    const float* w = memory_.floats(stage.parameter_size());
    const StepState* state = memory_.state();
    auto comparison = both([=, batch = batch_](DeviceOps& ops, Stream& stream, int call) {
      stage.head->device_forward({ops, stream, batch},
                                 {.weights = w,
                                  .x = x(call),
                                  .branch = x(call),
                                  .y = y(call),
                                  .saved = saved(call),
                                  .epilogue = &stage.epilogue,
                                  .state = state,
                                  .mask = stage.epilogue.count > 0 ? mask(call) : nullptr});
    });
    with_library_shape(*stage.head, batch_, [&](const auto& shape) {
      comparison.library = alone([=](VendorOps& ops, Stream& stream, int call) {
        forward_alone(ops, stream, shape, x(call), w, y(call));
      });
    });
    return comparison;
  }

  KernelComparison operator()(const DataGradientOp& op) {
    const Stage &stage = op.stage, &before = op.before;
    const auto x = floats(size_of(stage.input, batch_)), y = floats(size_of(stage.output, batch_));
    const auto dy = floats(size_of(stage.before_epilogue, batch_));
    const auto dx = floats(std::max(size_of(before.before_epilogue, batch_), size_of(stage.input, batch_)));
    const auto mask = masks(before), saved = saved_by(stage);
    const float* w = memory_.floats(stage.parameter_size());
    const bool through = before.epilogue.count > 0 && shape_through_epilogue(before, stage).has_value();
    const auto queue = [=, batch = batch_](DeviceOps& ops, Stream& stream, int call, bool expands) {
      const EpilogueBackward expand = way_back(before, mask(call));
      stage.head->device_backward_data({ops, stream, batch}, {.weights = w,
                                                              .x = x(call),
                                                              .y = y(call),
                                                              .saved = saved(call),
                                                              .epilogue = &stage.epilogue,
                                                              .dy = dy(call),
                                                              .dx = dx(call),
                                                              .through = expands ? &expand : nullptr});
    };
    auto comparison =
        both([=](DeviceOps& ops, Stream& stream, int call) { queue(ops, stream, call, through); });
    with_library_shape(*stage.head, batch_, [&](const auto& /*shape*/) {
      comparison.library =
          alone([=](VendorOps& ops, Stream& stream, int call) { queue(ops, stream, call, false); });
    });
    return comparison;
  }

  KernelComparison operator()(const WeightGradientOp& op) {
    const Stage& stage = op.stage;
    const std::size_t size = stage.parameter_size();
    const auto x = floats(size_of(stage.input, batch_)), dy = floats(size_of(stage.before_epilogue, batch_));
    std::int64_t* sums = memory_.integers(size + 1);
    std::vector<ExactTarget> targets;
    for (const Parameter& parameter : stage.head->parameters()) {
      targets.push_back(
          {sums + (parameter.offset - stage.parameter_offset()), kFormat, {.all = sums + size}});
    }
    float* dw = memory_.floats(size);
    auto comparison = both([=, batch = batch_, grain = grain_](DeviceOps& ops, Stream& stream, int call) {
      stage.head->device_backward_weights(
          {ops, stream, batch},
          {.x = x(call), .epilogue = &stage.epilogue, .dy = dy(call), .grain = grain, .gradients = targets});
    });
    with_library_shape(*stage.head, batch_, [&](const auto& shape) {
      comparison.library = alone([=](VendorOps& ops, Stream& stream, int call) {
        backward_weights_alone(ops, stream, shape, x(call), dy(call), dw);
      });
    });
    return comparison;
  }

  KernelComparison operator()(const EpilogueOp& op) {
    const Stage& stage = op.stage;
    const ImageShape image = stage.before_epilogue;
    const auto before = floats(size_of(image, batch_)), after = floats(size_of(stage.output, batch_));
    const auto mask = masks(stage);
    if (op.backward) {
      return native([=, this_stage = stage, batch = batch_](DeviceOps& ops, Stream& stream, int call) {
        ops.epilogue_backward(stream, way_back(this_stage, mask(call)), batch, after(call), before(call));
      });
    }
    const StepState* state = memory_.state();
    return native([=, epilogue = stage.epilogue, batch = batch_](DeviceOps& ops, Stream& stream, int call) {
      ops.epilogue_forward(stream, image, batch, before(call), epilogue, state, after(call), mask(call));
    });
  }

  KernelComparison operator()(const PoolOp& op) {
    if (op.max) return max_pool_comparison(op.shape, op.backward);
    return avg_pool_comparison(op.shape, op.backward);
  }

  KernelComparison operator()(const LossOp& op) {
    const LossShape shape{.batch = batch_, .samples = batch_, .classes = op.classes};
    const std::size_t size = size_of({op.classes, 1, 1}, batch_);
    const auto logits = floats(size), dlogits = floats(size);
    const LossTarget target{.labels = memory_.labels(static_cast<std::size_t>(batch_), op.classes),
                            .counters = memory_.integers(kCounterSlots),
                            .narrow_limit = 1e6};
    auto comparison = native([=](DeviceOps& ops, Stream& stream, int call) {
      ops.loss_and_gradient(stream, shape, logits(call), target, dlogits(call));
    });
    comparison.library = alone([=](VendorOps& ops, Stream& stream, int call) {
      ops.softmax_alone(stream, shape, logits(call), dlogits(call));
    });
    return comparison;
  }

  KernelComparison operator()(const LastLayerOp& op) {
    const Stage& stage = op.stage;
    const int classes = stage.output.features();
    const auto x = floats(size_of(stage.input, batch_)), dx = floats(size_of(stage.input, batch_));
    const auto y = floats(size_of(stage.output, batch_));
    const bool through = op.before && op.before->epilogue.count > 0;
    const auto mask = masks(through ? *op.before : stage);
    const float* w = memory_.floats(stage.parameter_size());
    const DeviceLoss loss{{.batch = batch_, .samples = batch_, .classes = classes},
                          {.labels = memory_.labels(static_cast<std::size_t>(batch_), classes),
                           .counters = memory_.integers(kCounterSlots),
                           .narrow_limit = 1e6}};
    return both([=, batch = batch_](DeviceOps& ops, Stream& stream, int call) {
      const DeviceLayerPass pass{ops, stream, batch};
      const EpilogueBackward expand = through ? way_back(*op.before, mask(call)) : EpilogueBackward{};
      const DeviceLayerTensors tensors{.weights = w,
                                       .x = x(call),
                                       .y = y(call),
                                       .epilogue = &stage.epilogue,
                                       .dy = y(call),
                                       .dx = op.before ? dx(call) : nullptr,
                                       .through = through ? &expand : nullptr};
      if (stage.head->device_forward_loss(pass, tensors, loss)) return;
      stage.head->device_forward(pass, tensors);
      ops.loss_and_gradient(stream, loss.shape, y(call), loss.target, y(call));
      if (op.before) stage.head->device_backward_data(pass, tensors);
    });
  }

  KernelComparison operator()(const UpdateOp& op) {
    const std::size_t size = kCounterSlots + op.parameters;
    UpdateArgs args;
    args.parameters = op.parameters;
    args.sums = memory_.integers(size);
    args.weights = memory_.floats(op.parameters);
    args.rule = UpdateRule::kSgdMomentum;
    args.buffers[0] = memory_.floats(op.parameters);
    args.state = memory_.state();
    const std::int64_t* before = memory_.step_sums(op.parameters, batch_);
    auto comparison = native([=](DeviceOps& ops, Stream& stream, int /*call*/) { ops.update(stream, args); });
    comparison.restore = [=](Stream& stream, int /*call*/) {
      stream.copy_on_device(args.sums, before, size * sizeof(std::int64_t));
    };
    return comparison;
  }

 private:
  KernelComparison max_pool_comparison(const Pool2dShape& shape, bool is_backward) {
    const auto x = floats(shape.in_size()), dx = floats(shape.in_size());
    const auto y = floats(shape.out_size()), dy = floats(shape.out_size());
    const auto argmax = bytes(shape.out_size(), static_cast<unsigned>(shape.kernel * shape.kernel));
    if (is_backward) {
      auto comparison = native([=](DeviceOps& ops, Stream& stream, int call) {
        ops.max_pool_backward(stream, shape, dy(call), argmax(call), dx(call));
      });
      comparison.library = alone([=](VendorOps& ops, Stream& stream, int call) {
        ops.max_pool_backward_alone(stream, shape, x(call), y(call), dy(call), dx(call));
      });
      return comparison;
    }
    auto comparison = native([=](DeviceOps& ops, Stream& stream, int call) {
      ops.max_pool_forward(stream, shape, x(call), y(call), argmax(call));
    });
    comparison.library = alone([=](VendorOps& ops, Stream& stream, int call) {
      ops.max_pool_forward_alone(stream, shape, x(call), y(call));
    });
    return comparison;
  }

  /// The vendor's average pool is the library's call alone.
  KernelComparison avg_pool_comparison(const Pool2dShape& shape, bool is_backward) {
    const auto x = floats(shape.in_size()), y = floats(shape.out_size());
    return both([=](DeviceOps& ops, Stream& stream, int call) {
      if (is_backward) {
        ops.avg_pool_backward(stream, shape, y(call), x(call));
      } else {
        ops.avg_pool_forward(stream, shape, x(call), y(call));
      }
    });
  }

  static EpilogueBackward way_back(const Stage& stage, const std::uint8_t* mask) {
    const ImageShape& image = stage.before_epilogue;
    return {image.channels, image.height, image.width, stage.epilogue.pool, stage.epilogue.factors(), mask};
  }

  template <typename Make>
  auto rotation(const Make& make) const {
    std::vector<decltype(make())> copies;
    for (int i = 0; i < sets_; ++i) copies.push_back(make());
    return Rotation(std::move(copies));
  }
  Rotation<float> floats(std::size_t size) const {
    return rotation([&] { return memory_.floats(size); });
  }
  Rotation<std::uint8_t> bytes(std::size_t size, unsigned below) const {
    return rotation([&] { return memory_.bytes(size, below); });
  }
  Rotation<std::uint8_t> masks(const Stage& stage) const {
    return bytes(size_of(stage.output, batch_), masks_below(stage.epilogue.pool));
  }

  Rotation<std::uint8_t> saved_by(const Stage& stage) const {
    return bytes(std::max(stage.head->saved_bytes(batch_), std::size_t{1}), 1);
  }

  /// queue(ops, stream, call) by these ops; empty without any.
  template <typename Ops, typename Queue>
  static QueueCall with(Ops* ops, const Queue& queue) {
    if (ops == nullptr) return {};
    return [queue, ops](Stream& stream, int call) { queue(*ops, stream, call); };
  }
  template <typename Queue>
  KernelComparison native(const Queue& queue) const {
    KernelComparison comparison;
    comparison.native = with(&compared_.native, queue);
    return comparison;
  }
  template <typename Queue>
  KernelComparison both(const Queue& queue) const {
    KernelComparison comparison = native(queue);
    comparison.vendor = with(compared_.vendor, queue);
    return comparison;
  }
  template <typename Queue>
  QueueCall alone(const Queue& queue) const {
    return with(compared_.fastest, queue);
  }

  int batch_, grain_, sets_;
  ComparedOps compared_;
  BenchMemory& memory_;
};

}  // namespace

KernelComparison make_comparison(const KernelCase& kernel, int grain, int sets, const ComparedOps& compared,
                                 BenchMemory& memory) {
  return std::visit(Builder(kernel.batch, grain, sets, compared, memory), kernel.op);
}

}  // namespace lockstep::bench
