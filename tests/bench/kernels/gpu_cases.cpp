// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The calls of a GPU for each stage of a network, by all contenders.
#include "kernels/numerics/sums.hpp"
#include "models/device_layer.hpp"
#include "models/layer_ops.hpp"
#include "models/stages.hpp"
#include "tests/bench/kernels/bench.hpp"

#include <algorithm>
#include <variant>

namespace lockstep::bench {
namespace {

constexpr int kGrain = 64;  // samples whose gradient is summed in fp32

/// The networks here have heads of no other kinds.
LayerOp head_of(const Stage& stage, int batch) {
  LayerOp op = stage.head->op();
  if (auto* conv = std::get_if<Conv2dShape>(&op)) {
    conv->batch = batch;
  } else {
    std::get<LinearShape>(op).batch = batch;
  }
  return op;
}

EpilogueBackward way_back(const Stage& stage, const std::uint8_t* mask) {
  const ImageShape& image = stage.before_epilogue;
  return {image.channels, image.height, image.width, stage.epilogue.pool, stage.epilogue.factors(), mask};
}

BothLayouts<std::uint8_t> masks_of(GpuMemory& memory, const Stage& stage) {
  return memory.bytes(stage.output.features(), 1U << (stage.epilogue.pool * stage.epilogue.pool));
}

DeviceLoss loss_of(GpuMemory& memory, int classes) {
  const int batch = memory.batch();
  return {{.batch = batch, .samples = batch, .classes = classes},
          {.labels = memory.labels(classes),
           .counters = memory.scratch(std::vector<std::int64_t>(kCounterSlots)),
           .narrow_limit = 1e6}};
}

auto result(GpuMemory& memory, const BothLayouts<float>& tensor, int features) {
  return [=, &memory](const DeviceOps& ops) { return memory.read(ops, tensor, features, memory.batch()); };
}

GpuCalls gather(GpuMemory& memory, int features) {
  const int batch = memory.batch();
  const DeviceDataset dataset{.images = memory.bytes(features, 256).vendor,
                              .labels = memory.labels(10),
                              .features = features,
                              .scale = 0.01F,
                              .shift = -0.4F};
  const std::int32_t* order = memory.labels(batch);
  std::int32_t* labels = memory.labels(10);
  const auto x = memory.floats(features);
  return {
      [=](auto& ops, auto& stream) { ops.gather(stream, batch, dataset, {.order = order}, x(ops), labels); }};
}

GpuCalls forward(GpuMemory& memory, const Stage& stage) {
  const int batch = memory.batch();
  const auto x = memory.floats(stage.input.features()), y = memory.floats(stage.output.features());
  const auto sums = memory.floats(stage.before_epilogue.features(), 0);
  const auto mask = masks_of(memory, stage);
  const float* w = memory.weights(stage.parameter_size());
  const StepState* state = memory.state();
  GpuCalls calls;
  calls.op = [=](auto& ops, auto& stream) {
    std::uint8_t* bits = stage.epilogue.count > 0 ? mask(ops) : nullptr;
    stage.head->device_forward(
        {ops, stream, batch},
        {.weights = w, .x = x(ops), .y = y(ops), .epilogue = &stage.epilogue, .state = state, .mask = bits});
  };
  calls.result = result(memory, y, stage.output.features());
  calls.alone = [=, head = head_of(stage, batch)](auto& ops, auto& stream) {
    if (const auto* conv = std::get_if<Conv2dShape>(&head)) {
      ops.conv2d_forward_alone(stream, *conv, x(ops), w, sums(ops));
    } else {
      ops.linear_forward_alone(stream, std::get<LinearShape>(head), x(ops), w, sums(ops));
    }
  };
  return calls;
}

/// Gradient of a stage to that of the stage before it, through the latter's epilogue if the kernel can.
GpuCalls data_gradient(GpuMemory& memory, const Stage& stage, const Stage& before) {
  const bool through = before.epilogue.count > 0 && shape_through_epilogue(before, stage).has_value();
  const int features = (through ? before.before_epilogue : stage.input).features();
  const auto dy = memory.gradient(stage.before_epilogue, stage.epilogue.pool), dx = memory.floats(features);
  const auto mask = masks_of(memory, before);
  const float* w = memory.weights(stage.parameter_size());
  const auto queue = [=, batch = memory.batch()](auto& ops, auto& stream, bool expands) {
    const EpilogueBackward expand = way_back(before, mask(ops));
    const EpilogueBackward* to = expands ? &expand : nullptr;
    stage.head->device_backward_data(
        {ops, stream, batch},
        {.weights = w, .epilogue = &stage.epilogue, .dy = dy(ops), .dx = dx(ops), .through = to});
  };
  return {[=](auto& ops, auto& stream) { queue(ops, stream, through); }, result(memory, dx, features),
          [=](auto& ops, auto& stream) { queue(ops, stream, false); }};
}

GpuCalls weight_gradient(GpuMemory& memory, const Stage& stage) {
  const int batch = memory.batch();
  const std::size_t size = stage.parameter_size();
  const auto x = memory.floats(stage.input.features());
  const auto dy = memory.gradient(stage.before_epilogue, stage.epilogue.pool);
  const auto sums = memory.sums(size + 1);
  float* dw = memory.weights(size, 0);
  GpuCalls calls;
  calls.op = [=](auto& ops, auto& stream) {
    std::vector<ExactTarget> to;
    for (const Parameter& parameter : stage.head->parameters())
      to.push_back({sums(ops) + (parameter.offset - stage.parameter_offset()),
                    exact_format(kGrain),
                    {.all = sums(ops) + size}});
    stage.head->device_backward_weights(
        {ops, stream, batch},
        {.x = x(ops), .epilogue = &stage.epilogue, .dy = dy(ops), .grain = kGrain, .gradients = to});
  };
  calls.result = [=, &memory](const DeviceOps& ops) {
    return memory.read(ops, sums, static_cast<int>(size), 1);
  };
  calls.alone = [=, head = head_of(stage, batch)](auto& ops, auto& stream) {
    if (const auto* conv = std::get_if<Conv2dShape>(&head)) {
      ops.conv2d_backward_weights_alone(stream, *conv, x(ops), dy(ops), dw);
    } else {
      ops.linear_backward_weights_alone(stream, std::get<LinearShape>(head), x(ops), dy(ops), dw);
    }
  };
  return calls;
}

/// The last stage, its loss and the gradient of its input: one launch if the ops have one.
GpuCalls last_layer(GpuMemory& memory, const Stage& stage, const Stage& before) {
  const int inputs = stage.input.features(), classes = stage.output.features();
  const auto x = memory.floats(inputs), dx = memory.floats(inputs), y = memory.floats(classes);
  const auto mask = masks_of(memory, before);
  const float* w = memory.weights(stage.parameter_size());
  const DeviceLoss loss = loss_of(memory, classes);
  const auto queue = [=](auto& ops, auto& stream) {
    const DeviceLayerPass pass{ops, stream, loss.shape.batch, /*grain=*/0, /*has_first_sample=*/false};
    const EpilogueBackward expand = way_back(before, mask(ops));
    const DeviceLayerTensors tensors{.weights = w,
                                     .x = x(ops),
                                     .y = y(ops),
                                     .epilogue = &stage.epilogue,
                                     .dy = y(ops),
                                     .dx = dx(ops),
                                     .through = &expand};
    if (stage.head->device_forward_loss(pass, tensors, loss)) return;
    stage.head->device_forward(pass, tensors);
    ops.loss_and_gradient(stream, loss.shape, y(ops), loss.target, y(ops));
    stage.head->device_backward_data(pass, tensors);
  };
  return {queue, result(memory, dx, inputs)};
}

GpuCalls loss_alone(GpuMemory& memory, int classes) {
  const auto logits = memory.floats(classes), dlogits = memory.floats(classes);
  const DeviceLoss loss = loss_of(memory, classes);
  GpuCalls calls;
  calls.op = [=](auto& ops, auto& stream) {
    ops.loss_and_gradient(stream, loss.shape, logits(ops), loss.target, dlogits(ops));
  };
  calls.alone = [=](auto& ops, auto& stream) {
    ops.softmax_alone(stream, loss.shape, logits(ops), dlogits(ops));
  };
  return calls;
}

GpuCalls pool_alone(GpuMemory& memory, const Stage& stage, bool max, bool backward) {
  const int in = stage.before_epilogue.features(), out = stage.output.features();
  const Pool2dShape shape{memory.batch(), stage.before_epilogue.channels, stage.before_epilogue.height,
                          stage.before_epilogue.width};
  const auto x = memory.floats(in), y = memory.floats(out);
  GpuCalls calls;
  if (!max) {
    calls.op = [=](auto& ops, auto& stream) {
      backward ? ops.avg_pool_backward(stream, shape, y(ops), x(ops))
               : ops.avg_pool_forward(stream, shape, x(ops), y(ops));
    };
    calls.result = backward ? result(memory, x, in) : result(memory, y, out);
    return calls;
  }
  const auto argmax = memory.bytes(out, 4);
  calls.op = [=](auto& ops, auto& stream) {
    backward ? ops.max_pool_backward(stream, shape, y(ops), argmax(ops), x(ops))
             : ops.max_pool_forward(stream, shape, x(ops), y(ops), argmax(ops));
  };
  const auto dx = memory.floats(in, 0);
  calls.alone = [=](auto& ops, auto& stream) {
    backward ? ops.max_pool_backward_alone(stream, shape, x(ops), y(ops), y(ops), dx(ops))
             : ops.max_pool_forward_alone(stream, shape, x(ops), y(ops));
  };
  return calls;
}

/// With momentum.
GpuCalls update(GpuMemory& memory, std::size_t parameters) {
  std::vector<std::int64_t> before(kCounterSlots + parameters, std::int64_t{1} << 40);
  std::fill_n(before.begin(), kCounterSlots, 0);
  before[kSamples] = memory.batch();
  UpdateArgs args;
  args.parameters = parameters;
  args.sums = memory.sums(before.size()).native;
  args.weights = memory.weights(parameters, 2);
  args.rule = UpdateRule::kSgdMomentum;
  args.buffers[0] = memory.weights(parameters, 2);
  args.state = memory.state();
  GpuCalls calls;
  calls.op = [=](auto& ops, auto& stream) { ops.update(stream, args); };
  calls.restore = [=, from = memory.scratch(before)](Stream& stream) {
    stream.copy_on_device(args.sums, from, before.size() * sizeof(before[0]));
  };
  return calls;
}

}  // namespace

std::vector<GpuCase> gpu_cases(const Network& network, int batch) {
  std::vector<GpuCase> cases;
  const auto stages = fuse_layers(network);
  const auto add = [&](const std::string& what, double flops, std::function<GpuCalls(GpuMemory&)> make) {
    cases.push_back({network.name() + " " + what, flops, std::move(make)});
  };
  const auto flops_of = [&](const Stage& s) {
    const ImagePart read{s.output.height * s.epilogue.pool, s.output.width * s.epilogue.pool};
    return s.head->needed_flops_per_sample(read) * batch;
  };
  const auto add_forward = [&](const Stage& s) {
    add(s.name + " forward", flops_of(s), [=](GpuMemory& m) { return forward(m, s); });
  };
  const auto add_data_gradient = [&](const Stage& s, const Stage& before) {
    add(s.name + " data gradient", flops_of(s), [=](GpuMemory& m) { return data_gradient(m, s, before); });
  };
  const std::size_t last = stages.size() - 1;
  const Stage &end = stages[last], &before_end = stages[last - 1];
  const int features = network.input_shape().features(), classes = network.classes();
  add("gather", 0, [=](GpuMemory& m) { return gather(m, features); });
  for (std::size_t i = 0; i < last; ++i) add_forward(stages[i]);
  add(end.name + " forward, loss, data gradient", 2 * flops_of(end),
      [=](GpuMemory& m) { return last_layer(m, end, before_end); });
  for (std::size_t i = last + 1; i-- > 0;) {
    const Stage& s = stages[i];
    add(s.name + " weight gradient", flops_of(s), [=](GpuMemory& m) { return weight_gradient(m, s); });
    if (i > 0 && i < last) add_data_gradient(s, stages[i - 1]);
  }
  add("update", 0, [size = network.parameters().size](GpuMemory& m) { return update(m, size); });

  add_forward(end);
  add("loss", 0, [=](GpuMemory& m) { return loss_alone(m, classes); });
  add_data_gradient(end, before_end);
  for (const Stage& s : stages) {
    if (s.epilogue.pool == 1) continue;
    const bool max = std::ranges::any_of(
        s.epilogue.steps, [](const EpilogueStep& step) { return step.kind == EpilogueKind::kMaxPool; });
    for (const bool backward : {false, true})
      add(s.name + (max ? " max_pool " : " avg_pool ") + (backward ? "backward" : "forward"), 0,
          [=](GpuMemory& m) { return pool_alone(m, s, max, backward); });
  }
  return cases;
}

}  // namespace lockstep::bench
