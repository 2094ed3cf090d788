// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops that a GPU runs in a training step of a network, as things to measure: what they are, the table of their
/// times, and one of them with its memory. Nothing here needs a GPU but the last.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/step_state.hpp"
#include "kernels/vendor/vendor.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "models/stages.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::bench {

/// Stages have batch 1; the batch is the case's.
struct GatherOp {
  int features = 0;
};
struct ForwardOp {
  Stage stage;
};
/// From the gradient of a stage to that of the stage before it, through the latter's epilogue.
struct DataGradientOp {
  Stage stage, before;
};
struct WeightGradientOp {
  Stage stage;
};
/// The epilogue on its own, which is part of other ops in training.
struct EpilogueOp {
  Stage stage;
  bool backward = false;
};
/// The pool on its own, likewise.
struct PoolOp {
  Pool2dShape shape;
  bool max = true, backward = false;
};
struct LossOp {
  int classes = 0;
};
/// The last stage, what it loses, and the gradient of its input if there is a stage before it that wants it: one launch
/// where the ops have one for it.
struct LastLayerOp {
  Stage stage;
  std::optional<Stage> before;
};
/// With momentum.
struct UpdateOp {
  std::size_t parameters = 0;
};

using KernelOp = std::variant<GatherOp, ForwardOp, DataGradientOp, WeightGradientOp, EpilogueOp, PoolOp,
                              LossOp, LastLayerOp, UpdateOp>;

struct KernelCase {
  std::string name;  ///< "net conv2 forward, dropout2d max_pool relu"
  KernelOp op;
  int batch = 0;
  double flops = 0;  ///< of the products; 0 for ops that only move data
  double bytes = 0;  ///< that must be read or written at least once
};

/// In the order of a step; behind it the parts that are fused in training.
std::vector<KernelCase> kernel_cases(const Network& network, int batch);

// The table of `lockstep bench kernels` on a GPU, and what a GPU could do at best. Nothing here needs one.

/// What bounds an op.
struct GpuLimits {
  double flops_per_second = 0;  ///< fp32, by fused multiply-adds
  double bytes_per_second = 0;
  double launch_seconds = 0;  ///< of a kernel that does nothing, in a graph
};

/// From multiprocessors and clock. fp32 units of a multiprocessor are known for compute capability 7.0 to
/// 12; later ones count as 128.
double nominal_flops_per_second(const DeviceProperties& properties);
/// From clock and width of the memory, two transfers a clock.
double nominal_memory_bytes_per_second(const DeviceProperties& properties);

/// One launch, and the longer of arithmetic and traffic.
double limit_seconds(const KernelCase& kernel, const GpuLimits& limits);

/// Seconds of one call.
struct KernelTimes {
  double native = 0;
  std::optional<double> vendor;   ///< the same result by cuDNN or cuBLAS
  std::optional<double> library;  ///< the library's call alone, which does less
};

struct KernelRow {
  KernelCase kernel;
  KernelTimes times;
};

std::string table_header();
std::string table_line(const KernelRow& row, const GpuLimits& limits);

/// Which ops are slower than the vendor's, or that none is; empty if nothing was compared.
std::string verdict(const std::vector<KernelRow>& rows);

// Device memory for benchmarks.

/// Device memory that is given back all at once, filled with small numbers.
class BenchMemory {
 public:
  BenchMemory(Device& device, Stream& stream) : device_(device), stream_(stream) {}
  float* floats(std::size_t size);
  std::int64_t* integers(std::size_t size);
  /// Counters of `samples` finite samples and a gradient for each parameter, as a step leaves them for the
  /// update.
  std::int64_t* step_sums(std::size_t parameters, int samples);
  /// Of masks for `pool`, of argmax for a pool of that window (then each names one tap), or of images.
  std::uint8_t* bytes(std::size_t size, unsigned below);
  std::int32_t* labels(std::size_t size, int classes);
  StepState* state();

 private:
  template <typename T>
  T* upload(const std::vector<T>& values);

  Device& device_;
  Stream& stream_;
  std::deque<DeviceBuffer<std::byte>> buffers_;
};

// Times ops on a device: many calls in one graph, between two events, so that neither the host nor the
// launching of single kernels is part of it.

/// Queues call number `call` (0, 1, ...) of an op.
using QueueCall = std::function<void(Stream& stream, int call)>;

class GraphTimer {
 public:
  /// @param calls     in the graph
  /// @param launches  of the graph in a turn
  /// Runs the op once before it captures it. Borrows device and stream.
  GraphTimer(Device& device, Stream& stream, const QueueCall& queue, int calls, int launches);

  /// Of one call, averaged over a turn. Blocks until it is done.
  double seconds();

 private:
  Stream& stream_;
  int calls_, launches_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Event> start_, end_;
};

// One case with its memory, ready to be queued natively and by the vendor.

/// Who is measured. Vendors may be null.
struct ComparedOps {
  DeviceOps& native;
  VendorOps* vendor = nullptr;   ///< for whole ops
  VendorOps* fastest = nullptr;  ///< for the library's calls alone
};

/// What is queued for each column of the table; empty: there is no such rival, as for ops of which the vendor
/// has none. A call works on the inputs and outputs of set `call % sets`; weights and sums are the same for
/// all.
struct KernelComparison {
  QueueCall native, vendor, library;
  QueueCall restore;  ///< queued before each call because the op destroys its input; timed on its own, too
};

/// @param sets  at least 1
KernelComparison make_comparison(const KernelCase& kernel, int grain, int sets, const ComparedOps& compared,
                                 BenchMemory& memory);

// The libraries' own calls of a layer, without bias and epilogue, where they have some.

template <typename... Arguments>
void forward_alone(VendorOps& ops, Stream& stream, const Conv2dShape& shape, Arguments... arguments) {
  ops.conv2d_forward_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void forward_alone(VendorOps& ops, Stream& stream, const LinearShape& shape, Arguments... arguments) {
  ops.linear_forward_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_weights_alone(VendorOps& ops, Stream& stream, const Conv2dShape& shape,
                            Arguments... arguments) {
  ops.conv2d_backward_weights_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_weights_alone(VendorOps& ops, Stream& stream, const LinearShape& shape,
                            Arguments... arguments) {
  ops.linear_backward_weights_alone(stream, shape, arguments...);
}

/// Calls use(shape), for so many samples, if the libraries have calls of their own for this kind of layer.
template <typename Use>
void with_library_shape(const Layer& layer, int batch, const Use& use) {
  std::visit(
      [&](auto op) {
        if constexpr (
            requires { &op.out_features; } || requires { &op.out_channels; }) {
          op.batch = batch;
          use(op);
        }
      },
      layer.op());
}

}  // namespace lockstep::bench
