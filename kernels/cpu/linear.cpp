// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers: forward, data gradient and weight gradient are one matrix product over the
/// register tile.
#include "kernels/cpu/linear.hpp"

#include "kernels/cpu/cpu_ops.hpp"
#include "kernels/cpu/lanes_scratch.hpp"
#include "kernels/cpu/linear_product.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/lanes_tile_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// The last columns, fewer than a vector: through a buffer.
void run_partial_tile(TileCall call, TileFunction tile, std::size_t rows, std::size_t columns) {
  HWY_ALIGN float buffer[kTileTargets * kVector];
  float* const target = call.target;
  const std::ptrdiff_t target_row = call.target_lane;
  call.target = buffer;
  call.target_lane = kVector;
  tile(call);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(buffer + i * kVector, columns, target + static_cast<std::ptrdiff_t>(i) * target_row);
  }
}

/// All columns of one block of rows, the first of which `call` stands at.
template <bool kPacked>
void multiply_rows(TileCall call, std::size_t rows, std::size_t columns) {
  for (std::size_t j = 0; j < columns;) {
    const std::size_t vectors = tile_vectors((columns - j) / kVector);
    const std::size_t width = vectors * kVector;
    const TileFunction tile = find_tile<kPacked>(rows, vectors);
    if (j + width <= columns) {
      tile(call);
    } else {
      run_partial_tile(call, tile, rows, columns - j);
    }
    call.source += width;
    call.target += width;
    j += width;
  }
}

template <bool kPacked>
void multiply(const Product& product) {
  TileCall call;
  call.columns = product.depth;
  call.source_column = product.b_depth;
  call.weight_column = product.a_depth;
  call.weight_lane = product.a_row;
  call.target_lane = product.c_row;
  for_each_block(product.rows, tile_targets(product.columns / kVector),
                 [&](std::size_t first, std::size_t rows) {
                   const auto row = static_cast<std::ptrdiff_t>(first);
                   call.source = product.b;
                   call.weights = product.a + row * product.a_row;
                   call.bias = product.bias == nullptr ? nullptr : product.bias + first;
                   call.target = product.c + row * product.c_row;
                   multiply_rows<kPacked>(call, rows, product.columns);
                 });
}

}  // namespace

void call_multiply(const Product& product) {
  product.a_row == 1 ? multiply<true>(product) : multiply<false>(product);
}

/// to [columns, to_stride] = transpose of from [rows, columns]. Columns are a multiple of kLine; rows beyond
/// a multiple of four are done one by one.
void call_transpose(std::size_t rows, std::size_t columns, const float* from, std::size_t to_stride,
                    float* to) {
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    for (std::size_t j = 0; j < columns; j += 4) {
      transpose_4x4(from + i * columns + j, columns, to + j * to_stride + i, to_stride);
    }
  }
  for (; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * columns + j];
  }
}

/// sums[i] = sum over j of x[i][j]: one line of partial sums, then its tree.
void call_sum_rows(std::size_t rows, std::size_t columns, const float* x, float* sums) {
  for (std::size_t i = 0; i < rows; ++i) {
    HWY_ALIGN float line[kLine];
    for (std::size_t lane = 0; lane < kLine; lane += kVector) {
      Lanes sum = hn::Zero(kTag);
      for (std::size_t j = lane; j < columns; j += kLine)
        sum = hn::Add(sum, hn::LoadU(kTag, x + i * columns + j));
      hn::StoreU(sum, kTag, line + lane);
    }
    sum_lines(line, 1, sums + i);
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(call_multiply);
HWY_EXPORT(call_transpose);
HWY_EXPORT(call_sum_rows);

void linear_forward(const LinearShape& s, const float* x, const float* w, const float* b, float* y) {
  const auto rows = static_cast<std::size_t>(s.out_features), depth = static_cast<std::size_t>(s.in_features);
  HWY_DYNAMIC_DISPATCH(call_multiply)
  ({.rows = rows,
    .columns = static_cast<std::size_t>(s.batch),
    .depth = depth,
    .a = w,
    .a_row = s.in_features,
    .a_depth = 1,
    .b = x,
    .b_depth = s.batch,
    .c = y,
    .c_row = s.batch,
    .bias = b});
}

void linear_backward_data(const LinearShape& s, const float* dy, const float* w, float* dx) {
  const auto rows = static_cast<std::size_t>(s.in_features), depth = static_cast<std::size_t>(s.out_features);
  HWY_DYNAMIC_DISPATCH(call_multiply)
  ({.rows = rows,
    .columns = static_cast<std::size_t>(s.batch),
    .depth = depth,
    .a = w,
    .a_row = 1,
    .a_depth = s.in_features,
    .b = dy,
    .b_depth = s.batch,
    .c = dx,
    .c_row = s.batch});
}

void linear_backward_weights(const LinearShape& s, const float* x, const float* dy, float* dw, float* db) {
  // Lanes run over the inputs, not over samples: no sum across lanes, at the price of transposing x.
  static thread_local Scratch scratch;
  const auto batch = static_cast<std::size_t>(s.batch), inputs = static_cast<std::size_t>(s.in_features);
  const auto outputs = static_cast<std::size_t>(s.out_features);
  const std::size_t stride = (inputs + kLanes - 1) / kLanes * kLanes;
  float* transposed = scratch.floats(batch * stride);
  HWY_DYNAMIC_DISPATCH(call_transpose)(inputs, batch, x, stride, transposed);
  HWY_DYNAMIC_DISPATCH(call_multiply)
  ({.rows = outputs,
    .columns = inputs,
    .depth = batch,
    .a = dy,
    .a_row = s.batch,
    .a_depth = 1,
    .b = transposed,
    .b_depth = static_cast<std::ptrdiff_t>(stride),
    .c = dw,
    .c_row = s.in_features});
  HWY_DYNAMIC_DISPATCH(call_sum_rows)(outputs, batch, dy, db);
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
