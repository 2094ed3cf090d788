// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// cuBLAS counts elements down the columns, so a matrix of ours [rows][columns] is for it the transpose, of
/// `columns` rows: x is I by N, w is I by O, y is O by N.
#include "kernels/vendor/linear.hpp"

namespace lockstep::vendor {
namespace {

/// A matrix as it lies in memory, and whether its transpose is meant.
struct Factor {
  const float* data;
  int rows;  ///< as cuBLAS counts, of what lies in memory
  cublasOperation_t as = CUBLAS_OP_N;
};

/// c [rows by columns] = a b, with `inner` terms each.
void multiply(StreamContext& context, int rows, int columns, int inner, const Factor& a, const Factor& b,
              float* c) {
  LOCKSTEP_CUBLAS(cublasSgemm(context.cublas(), a.as, b.as, rows, columns, inner, &kOne, a.data, a.rows,
                              b.data, b.rows, &kZero, c, rows));
}

}  // namespace

Linear::Linear(const LinearShape& shape) : shape_(shape), bias_(shape.batch, output()) {}

void Linear::forward(StreamContext& context, const float* x, const float* w, float* y) const {
  const auto [batch, in, out] = shape_;
  multiply(context, out, batch, in, {w, in, CUBLAS_OP_T}, {x, in}, y);
}

void Linear::backward_data(StreamContext& context, const float* dy, const float* w, float* dx) const {
  const auto [batch, in, out] = shape_;
  multiply(context, in, batch, out, {w, in}, {dy, out}, dx);
}

void Linear::backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) const {
  const auto [batch, in, out] = shape_;
  multiply(context, in, out, batch, {x, in}, {dy, out, CUBLAS_OP_T}, dw);
}

}  // namespace lockstep::vendor
