// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arbitrary bytes as the ONNX file of a small network. Refused with one line, or read, as a whole or in
/// part; then what is written of it is read again to the same bits.
#include "common/error.hpp"
#include "models/foreign_weights.hpp"
#include "models/network.hpp"
#include "models/onnx/onnx.hpp"
#include "tests/fuzz/checks.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

using lockstep::Network;
using lockstep::fuzz::require;

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

std::vector<float> read(std::vector<std::byte> bytes, lockstep::WeightsFit fit) {
  std::vector<float> weights(network().parameters().weights_size());
  lockstep::read_foreign_weights(lockstep::read_onnx(std::move(bytes), "fuzz"), "fuzz.onnx", network(),
                                 weights, fit);
  return weights;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  for (const auto fit : {lockstep::WeightsFit::kPart, lockstep::WeightsFit::kAll}) {
    std::vector<float> weights;
    try {
      weights = read({first, first + size}, fit);
    } catch (const lockstep::DataError& error) {
      require(std::string(error.what()).find('\n') == std::string::npos);
      continue;
    }
    const auto again = read(lockstep::write_onnx(network(), weights, {}), lockstep::WeightsFit::kAll);
    require(std::memcmp(again.data(), weights.data(), weights.size() * sizeof(float)) == 0);
  }
  return 0;
}
