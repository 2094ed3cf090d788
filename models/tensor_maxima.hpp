// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The column maxima of all operands of an Execution: which pass finds some, and which layers read them.
#pragma once

#include "common/buffers.hpp"
#include "kernels/cpu/int16/column_maxima.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "models/tensor_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace lockstep {

/// Activations and gradients that a layer multiplies in 16-bit integers have a place here, all others null. Layers are
/// counted from its first one. Recomputation makes the same numbers, whose maxima stay.
class TensorMaxima {
 public:
  TensorMaxima(Layers layers, std::size_t first_layer, int columns)
      : tensor_(layers.size() + 1), activations_(layers.size() + 1), gradients_(layers.size() + 1) {
    std::vector<cpu::ColumnMaxima*> read;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      tensor_[i + 1] = same_tensor(*layers[i], i, first_layer);
      if (!reads_operands(*layers[i])) continue;
      read.push_back(&activations_[tensor_[i]]);
      read.push_back(&gradients_[i + 1]);
    }
    bits_ = AlignedBuffer<std::uint32_t>(read.size() * static_cast<std::size_t>(columns));
    std::uint32_t* bits = bits_.data();
    for (cpu::ColumnMaxima* maxima : read) {
      maxima->bits = bits;
      bits += columns;
    }
  }

  cpu::ColumnMaxima* of_input(std::size_t i) { return unless_unread(activations_[tensor_[i]]); }
  cpu::ColumnMaxima* of_output(std::size_t i) { return of_input(i + 1); }
  cpu::ColumnMaxima* of_output_gradient(std::size_t i) { return of_input_gradient(i + 1); }
  cpu::ColumnMaxima* of_input_gradient(std::size_t i) { return unless_unread(gradients_[i]); }

  void forget_activations() { forget(activations_); }
  void forget_gradients() { forget(gradients_); }

 private:
  static bool reads_operands(const Layer& layer) {
    const LayerOp op = layer.op();
    const bool multiplies = std::holds_alternative<Conv2dShape>(op) ||
                            std::holds_alternative<LinearShape>(op) ||
                            std::holds_alternative<ConvTransposeOp>(op);
    return multiplies && layer.precision() == Precision::kInt16;
  }
  /// The tensor with the numbers of layer i's output.
  std::size_t same_tensor(const Layer& layer, std::size_t i, std::size_t first_layer) const {
    const LayerOp op = layer.op();
    if (std::holds_alternative<ViewOp>(op)) return tensor_[i];
    if (std::holds_alternative<RouteOp>(op)) return tensor_[*layer.branch() - first_layer + 1];
    return i + 1;
  }
  static cpu::ColumnMaxima* unless_unread(cpu::ColumnMaxima& maxima) {
    return maxima.bits == nullptr ? nullptr : &maxima;
  }
  static void forget(std::vector<cpu::ColumnMaxima>& all) {
    for (cpu::ColumnMaxima& maxima : all) maxima.are_found = false;
  }

  /// For the input, then for each layer's output: its place among activations.
  std::vector<std::size_t> tensor_;
  std::vector<cpu::ColumnMaxima> activations_;
  /// For the input, whose gradient no layer reads, then for each layer's output.
  std::vector<cpu::ColumnMaxima> gradients_;
  AlignedBuffer<std::uint32_t> bits_;
};

}  // namespace lockstep
