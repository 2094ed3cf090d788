// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a program built without Protocol Buffers says in place of reading and writing ONNX.
#include "common/error.hpp"
#include "models/onnx/onnx.hpp"

namespace lockstep {
namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "this program was built without ONNX; install protobuf-compiler and libprotobuf-dev and build it "
      "again, or use "
      "safetensors files");
}

}  // namespace

std::vector<std::byte> write_onnx(const Network& /*network*/, std::span<const float> /*weights*/,
                                  const OnnxFacts& /*facts*/) {
  refuse();
}

std::string read_onnx(std::span<const std::byte> /*bytes*/, const std::string& /*file*/,
                      const Network& /*network*/, std::span<float> /*weights*/) {
  refuse();
}

}  // namespace lockstep
