// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arbitrary bytes as the ONNX file of a small network: refused with one line, or read, and then what is written of
/// it is read again to the same bits.
#include "common/error.hpp"
#include "models/network.hpp"
#include "models/onnx/onnx.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using lockstep::Network;

/// tests/fuzz/corpus/onnx/small.onnx is a file of it.
const Network& network() {
  static const Network kNetwork = Network::parse(
      "name: small\nlayers:\n  - conv2d: {out: 2, kernel: 3}\n  - batch_norm\n  - gelu: {name: start}\n"
      "  - conv2d: {out: 2, kernel: 3, padding: 1, bias: false}\n  - add: start\n  - max_pool\n  - "
      "global_avg_pool\n"
      "  - linear: {out: 4, bias: false}\n  - tanh\n  - linear: classes\n",
      "small.yaml", {1, 6, 6}, 2);
  return kNetwork;
}

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const std::vector<float>& weights) {
  std::vector<float> again(weights.size());
  lockstep::read_onnx(lockstep::write_onnx(network(), weights, {}), "again", network(), again);
  require(std::memcmp(again.data(), weights.data(), weights.size() * sizeof(float)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<float> weights(network().parameters().weights_size());
  try {
    lockstep::read_onnx({reinterpret_cast<const std::byte*>(data), size}, "fuzz", network(), weights);
  } catch (const lockstep::DataError& error) {
    const std::string message = error.what();
    require(message.find('\n') == message.npos && message.size() < 2000);
    return 0;
  }
  use(weights);
  return 0;
}
