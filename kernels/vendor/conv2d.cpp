// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Three directions, each with the algorithm that was the fastest where that was asked for.
#include "kernels/vendor/conv2d.hpp"

namespace lockstep::vendor {
namespace {

/// A tensor as cuDNN wants it. Data is const float* or, for an output, float*.
template <typename Descriptor, typename Data>
struct Operand {
  Descriptor descriptor;
  Data data;
};
// For compilers that do not deduce it of a struct by themselves, such as clang 14.
template <typename Descriptor, typename Data>
Operand(Descriptor, Data) -> Operand<Descriptor, Data>;

/// c = the direction's operation on a and b.
template <typename Api, typename A, typename B, typename C>
void run(StreamContext& context, VendorAlgorithms algorithms, std::optional<Conv2dAlgorithm<Api>>& chosen,
         cudnnConvolutionDescriptor_t convolution, A a, B b, C c) {
  if (!chosen) {
    chosen = choose_algorithm<Api>(context.cudnn(), algorithms, a.descriptor, b.descriptor, convolution,
                                   c.descriptor);
  }
  void* workspace = context.bytes(Scratch::kWorkspace, chosen->workspace_bytes);
  LOCKSTEP_CUDNN(Api::run(context.cudnn(), &kOne, a.descriptor, a.data, b.descriptor, b.data, convolution,
                          chosen->algorithm, workspace, chosen->workspace_bytes, &kZero, c.descriptor,
                          c.data));
}

}  // namespace

Conv2d::Conv2d(const Conv2dShape& shape, VendorAlgorithms algorithms)
    : shape_(shape),
      algorithms_(algorithms),
      x_(describe_tensor(shape.batch, input())),
      y_(describe_tensor(shape.batch, output())),
      w_(describe_filter(shape)),
      convolution_(describe_convolution(shape)),
      bias_(shape.batch, output()) {}

void Conv2d::forward(StreamContext& context, const float* x, const float* w, float* y) {
  run<ForwardApi>(context, algorithms_, forward_, convolution_.get(),
                  Operand{x_.get(), context.aligned(Scratch::kX, x, shape_.in_size())},
                  Operand{w_.get(), context.aligned(Scratch::kW, w, shape_.weight_size())},
                  Operand{y_.get(), y});
}

void Conv2d::backward_data(StreamContext& context, const float* dy, const float* w, float* dx) {
  run<BackwardDataApi>(context, algorithms_, backward_data_, convolution_.get(),
                       Operand{w_.get(), context.aligned(Scratch::kW, w, shape_.weight_size())},
                       Operand{y_.get(), context.aligned(Scratch::kDy, dy, shape_.out_size())},
                       Operand{x_.get(), dx});
}

void Conv2d::backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) {
  run<BackwardWeightsApi>(context, algorithms_, backward_weights_, convolution_.get(),
                          Operand{x_.get(), context.aligned(Scratch::kX, x, shape_.in_size())},
                          Operand{y_.get(), context.aligned(Scratch::kDy, dy, shape_.out_size())},
                          Operand{w_.get(), dw});
}

}  // namespace lockstep::vendor
