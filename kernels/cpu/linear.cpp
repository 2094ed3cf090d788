// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers: forward, data gradient and weight gradient are one matrix product over the
/// register tile.
#include "kernels/cpu/operands.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/sum_cuts.hpp"

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
  const std::size_t target_row = call.target_lane;
  call.target = buffer;
  call.target_lane = kVector;
  tile(call);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(buffer + i * kVector, columns, target + i * target_row);
}

/// All columns of one block of rows; `call` is at the first of them.
template <bool kPacked>
void multiply_rows(TileCall call, std::size_t rows, std::size_t columns) {
  for (std::size_t j = 0, width = 0; j < columns; j += width) {
    const std::size_t vectors = tile_vectors((columns - j) / kVector);
    width = vectors * kVector;
    const TileFunction tile = find_tile<kPacked>(rows, vectors);
    if (j + width <= columns) {
      tile(call);
    } else {
      run_partial_tile(call, tile, rows, columns - j);
    }
    call.source += width;
    call.target += width;
  }
}

template <bool kPacked>
void multiply(const Product& product) {
  TileCall call;
  const std::size_t blocks = call.groups = (product.depth + product.block - 1) / product.block;
  call.columns = product.block;
  call.last_columns = product.depth - (blocks - 1) * product.block;
  call.source_group = product.block * product.b_depth;
  call.weight_group = product.block * product.a_depth;
  call.source_column = product.b_depth;
  call.weight_column = product.a_depth;
  call.weight_lane = product.a_row;
  call.target_lane = product.c_row;
  for_each_block(product.rows, tile_targets(product.columns / kVector),
                 [&](std::size_t first, std::size_t rows) {
                   call.source = product.b;
                   call.weights = product.a + first * product.a_row;
                   call.start = product.start == nullptr ? nullptr : product.start + first;
                   call.target = product.c + first * product.c_row;
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
    for (std::size_t j = 0; j < columns; j += 4)
      transpose_4x4(from + i * columns + j, columns, to + j * to_stride + i, to_stride);
  }
  for (; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * columns + j];
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(call_multiply);
HWY_EXPORT(call_transpose);

namespace {

/// Sums rows [first, first + kCount) of x [.., columns]: chains by rising column, blocks added in order. Several rows
/// at a time, because each waits for its last addition.
template <std::size_t kCount>
void sum_some_rows(const float* x, std::size_t columns, float* sums) {
  float total[kCount] = {};
  for (std::size_t block = 0; block < columns; block += kSampleBlock) {
    float sum[kCount] = {};
    const std::size_t end = std::min<std::size_t>(columns, block + kSampleBlock);
    for (std::size_t j = block; j < end; ++j) {
      for (std::size_t i = 0; i < kCount; ++i) sum[i] += x[i * columns + j];
    }
    for (std::size_t i = 0; i < kCount; ++i) total[i] = block == 0 ? sum[i] : total[i] + sum[i];
  }
  std::copy_n(total, kCount, sums);
}

void sum_rows(std::size_t rows, std::size_t columns, const float* x, float* sums) {
  constexpr std::size_t kAtOnce = 8;
  std::size_t i = 0;
  for (; i + kAtOnce <= rows; i += kAtOnce) sum_some_rows<kAtOnce>(x + i * columns, columns, sums + i);
  for (; i < rows; ++i) sum_some_rows<1>(x + i * columns, columns, sums + i);
}

/// Adds slices of several blocks: each but the first is summed in separate memory, then added to those before.
void add_slices(std::size_t length, Product product) {
  static thread_local Scratch scratch;
  const std::size_t size = product.rows * product.columns, inputs = product.depth;
  const float *w = product.a, *x = product.b;
  float* const y = product.c;
  for (std::size_t first = 0; first < inputs; first += length) {
    product.depth = std::min(length, inputs - first);
    product.a = w + first;
    product.b = x + first * product.b_depth;
    if (first > 0) product.c = scratch.floats(size);
    HWY_DYNAMIC_DISPATCH(call_multiply)(product);
    if (first > 0) add(size, y, product.c, y);
    product.start = nullptr;
  }
}

}  // namespace

void linear_forward(const LinearShape& s, const float* x, const float* w, const float* b, float* y) {
  const std::size_t rows = s.out_features, columns = s.batch, depth = s.in_features;
  const std::size_t length = InputSlices(s.in_features).length, block = InputSlices::kBlock;
  const Product product{.rows = rows,
                        .columns = columns,
                        .depth = depth,
                        .block = std::min(length, block),
                        .a = w,
                        .a_row = s.in_features,
                        .a_depth = 1,
                        .b = x,
                        .b_depth = s.batch,
                        .c = y,
                        .c_row = s.batch,
                        .start = b};
  length <= block ? HWY_DYNAMIC_DISPATCH(call_multiply)(product) : add_slices(length, product);
}

void linear_backward_data(const LinearShape& s, const float* dy, const float* w, float* dx) {
  const std::size_t rows = s.in_features, columns = s.batch, depth = s.out_features;
  HWY_DYNAMIC_DISPATCH(call_multiply)
  ({.rows = rows,
    .columns = columns,
    .depth = depth,
    .block = kOutputBlock,
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
  const std::size_t batch = s.batch, inputs = s.in_features, outputs = s.out_features;
  const int stride = pieces(s.in_features, kLanes) * kLanes;
  float* transposed = scratch.floats(batch * stride);
  HWY_DYNAMIC_DISPATCH(call_transpose)(inputs, batch, x, stride, transposed);
  HWY_DYNAMIC_DISPATCH(call_multiply)
  ({.rows = outputs,
    .columns = inputs,
    .depth = batch,
    .block = kSampleBlock,
    .a = dy,
    .a_row = s.batch,
    .a_depth = 1,
    .b = transposed,
    .b_depth = stride,
    .c = dw,
    .c_row = s.in_features});
  sum_rows(outputs, batch, dy, db);
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
