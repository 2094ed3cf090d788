// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Models from strangers: a line "channels height width classes", then the YAML of a network. Either one line
/// of complaint, or a network that is what it says: the same once more from its own text, with sizes within
/// the stated limits and plans that hold together. (Running them is the part of
/// tests/models/random_networks.)
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"
#include "models/network.hpp"
#include "models/stages.hpp"
#include "tests/fuzz/checks.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using lockstep::ImageShape;
using lockstep::Network;
using lockstep::fuzz::require;

struct Input {
  ImageShape shape{1, 28, 28};
  int classes = 10;
  std::string yaml;
};

/// Takes the next number from the text; what is none leaves `number` as it is.
void take(std::string_view& text, int& number) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
}

Input split(std::string_view text) {
  Input input;
  std::string_view line = text.substr(0, text.find('\n'));
  input.yaml = text.size() > line.size() ? text.substr(line.size() + 1) : "";
  for (int* number : {&input.shape.channels, &input.shape.height, &input.shape.width, &input.classes})
    take(line, *number);
  return input;
}

void check_shapes(const Network& network) {
  std::uint64_t parameters = 0;
  ImageShape shape = network.input_shape();
  for (const auto& layer : network.layers()) {
    require(layer->input() == shape && layer->parameter_offset() == parameters);
    shape = layer->output();
    require(shape.channels > 0 && shape.height > 0 && shape.width > 0);
    require(lockstep::checked_product(shape.channels, shape.height, shape.width) <= lockstep::kMaxFeatures);
    parameters += layer->parameter_size();
  }
  require(shape.features() == network.classes());
  require(parameters == network.parameters().size && parameters <= lockstep::kMaxParameters &&
          parameters > 0);
}

void check_plans(const Network& network) {
  const auto stages = lockstep::fuse_layers(network);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    require(lockstep::without_dropout(stages[i].epilogue).count <= stages[i].epilogue.count);
    if (i == 0 || stages[i - 1].epilogue.count == 0) continue;
    if (stages[i].branch) require(*stages[i].branch <= i);
    const auto shape = lockstep::shape_through_epilogue(stages[i - 1], stages[i]);
    require(!shape || shape->features() == stages[i - 1].before_epilogue.features());
  }
  constexpr int kColumns = 64;
  const std::uint64_t input =
      lockstep::checked_product(network.input_shape().features(), kColumns, sizeof(float));
  require(lockstep::execution_bytes(network, kColumns) >= input);
  require(lockstep::kernel_scratch_bytes(network, kColumns) < lockstep::kTooLarge);
  require(lockstep::device_execution_bytes(network, kColumns, true) >=
          lockstep::device_execution_bytes(network, kColumns, false));
  try {
    lockstep::check_device_limits(network, 1 << 20);
  } catch (const lockstep::ShapeError&) {  // NOLINT(bugprone-empty-catch): refusing is right
  }
}

/// Nothing that it throws may be taken for a complaint about the file.
void use(const Network& network, const Input& input) noexcept {
  check_shapes(network);
  check_plans(network);
  const Network again = Network::parse(network.yaml(), "model.yaml", input.shape, input.classes);
  require(again.summary() == network.summary() && again.name() == network.name());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Input input = split({reinterpret_cast<const char*>(data), size});
  try {
    use(Network::parse(input.yaml, "model.yaml", input.shape, input.classes), input);
  } catch (const lockstep::Error& error) {
    const std::string message = error.what();
    require(error.code() == lockstep::ExitCode::kUsage);
    require(message.find('\n') == message.npos && message.size() < 2000);
  }
  return 0;
}
