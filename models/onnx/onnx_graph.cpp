// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Parsing, and the index of readers and constants.
#include "models/onnx/onnx_graph.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"

#include <climits>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

/// A network has 1,024 layers at most.
constexpr int kMostNodes = 65536;
/// Before it, operators that are read here meant other things.
constexpr std::int64_t kOldestOperatorSet = 9;

void check_operator_sets(const onnx::ModelProto& model, const std::string& file) {
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    if (!set.domain().empty() && set.domain() != "ai.onnx") continue;
    if (set.version() < kOldestOperatorSet)
      throw DataError(fmt::format("{}: operator set {} is older than {}; export it with a newer one", file,
                                  set.version(), kOldestOperatorSet));
  }
}

}  // namespace

OnnxGraph::OnnxGraph(std::span<const std::byte> bytes, const std::string& file) : file_(file) {
  if (bytes.size() > INT_MAX)
    throw DataError(fmt::format("{}: larger than 2 GiB, which no ONNX file is", file));
  if (!model_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model_.has_graph())
    throw DataError(fmt::format("{}: is no ONNX model, or one that is cut off; export it again", file));
  const onnx::GraphProto& graph = model_.graph();
  if (graph.node_size() > kMostNodes)
    throw DataError(fmt::format("{}: has {} nodes; at most {}", file, graph.node_size(), kMostNodes));
  if (graph.output_size() < 1) throw DataError(fmt::format("{}: its graph has no output", file));
  check_operator_sets(model_, file);
  for (const onnx::TensorProto& tensor : graph.initializer()) add_constant(tensor.name(), tensor);
  for (std::size_t i = 0; i < static_cast<std::size_t>(graph.node_size()); ++i) {
    if (!node(i).domain().empty() && node(i).domain() != "ai.onnx")
      throw DataError(fmt::format("{}: node {} is of the domain {}, whose operators are not known", file, i,
                                  quoted_text(node(i).domain())));
    for (const std::string& value : node(i).input())
      if (auto& readers = readers_[value]; readers.empty() || readers.back() != i) readers.push_back(i);
    add_constant_of(node(i));
  }
  find_input();
}

/// Nodes stand in the order in which they are computed. Of numbers that were reshaped the shape would be another.
void OnnxGraph::add_constant_of(const onnx::NodeProto& node) {
  if (node.output_size() != 1) return;
  const onnx::TensorProto* input = node.input_size() > 0 ? constant(node.input(0)) : nullptr;
  if (node.op_type() == "Constant") {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == "value" && attribute.has_t()) add_constant(node.output(0), attribute.t());
      if (attribute.name() == "value_float") numbers_.emplace(node.output(0), attribute.f());
    }
  } else if (input != nullptr &&
             (node.op_type() == "Identity" ||
              (node.op_type() == "Reshape" && input->data_type() == onnx::TensorProto::INT64))) {
    add_constant(node.output(0), *input);
  } else if (is_one_of(node.op_type(), {"Expand", "CastLike"}) && node.input_size() > 0) {
    if (const auto repeated = number(node.input(0))) numbers_.emplace(node.output(0), *repeated);
  }
}

void OnnxGraph::add_constant(const std::string& name, const onnx::TensorProto& tensor) {
  if (constants_.emplace(name, &tensor).second) return;
  throw DataError(fmt::format("{}: has two tensors of the name {}", file_, quoted_text(name)));
}

/// Older files list their constants among the inputs.
void OnnxGraph::find_input() {
  for (const onnx::ValueInfoProto& input : model_.graph().input()) {
    if (constant(input.name()) != nullptr) continue;
    if (input_ != nullptr)
      throw DataError(fmt::format("{}: has the inputs {} and {}; a network takes one", file_,
                                  quoted_text(input_->name()), quoted_text(input.name())));
    input_ = &input;
  }
  if (input_ == nullptr) throw DataError(fmt::format("{}: its graph has no input", file_));
}

std::string OnnxGraph::producer() const {
  constexpr std::size_t kLongest = 60;
  const std::string name = model_.producer_name() + " " + model_.producer_version();
  return name == " " ? "a program without a name" : printable_line(trimmed(name.substr(0, kLongest)));
}

bool OnnxGraph::has(std::string_view op) const {
  return std::ranges::any_of(model_.graph().node(),
                             [&](const onnx::NodeProto& node) { return node.op_type() == op; });
}

const std::vector<std::size_t>& OnnxGraph::readers(const std::string& value) const {
  static const std::vector<std::size_t> kNone;
  const auto found = readers_.find(value);
  return found == readers_.end() ? kNone : found->second;
}

const onnx::TensorProto* OnnxGraph::constant(const std::string& value) const {
  const auto found = constants_.find(value);
  return found == constants_.end() ? nullptr : found->second;
}

std::optional<float> OnnxGraph::number(const std::string& value) const {
  if (const auto found = numbers_.find(value); found != numbers_.end()) return found->second;
  const onnx::TensorProto* tensor = constant(value);
  if (tensor == nullptr || !why_not_numbers(*tensor, 1).empty()) return std::nullopt;
  float number = 0;
  copy_numbers(*tensor, std::span(&number, 1));
  return number;
}

std::string describe(const onnx::NodeProto& node) {
  const std::string& name = !node.name().empty() || node.output().empty() ? node.name() : node.output(0);
  constexpr std::size_t kLongest = 40;
  return fmt::format("{} {}", printable_line(node.op_type().substr(0, kLongest)), quoted_text(name));
}

// Attributes.

namespace {

const onnx::AttributeProto* find(const onnx::NodeProto& node, std::string_view name) {
  const auto found = std::ranges::find(node.attribute(), name, &onnx::AttributeProto::name);
  return found == node.attribute().end() ? nullptr : &*found;
}

}  // namespace

std::int64_t integer_of(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const onnx::AttributeProto* attribute = find(node, name);
  return attribute == nullptr ? otherwise : attribute->i();
}

float number_of(const onnx::NodeProto& node, std::string_view name, float otherwise) {
  const onnx::AttributeProto* attribute = find(node, name);
  return attribute == nullptr ? otherwise : attribute->f();
}

std::string text_of(const onnx::NodeProto& node, std::string_view name, std::string_view otherwise) {
  const onnx::AttributeProto* attribute = find(node, name);
  return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::vector<std::int64_t> integers_of(const onnx::NodeProto& node, std::string_view name,
                                      const std::vector<std::int64_t>& otherwise) {
  const onnx::AttributeProto* attribute = find(node, name);
  if (attribute == nullptr) return otherwise;
  return {attribute->ints().begin(), attribute->ints().end()};
}

// Constants.

std::vector<std::int64_t> shape_of(const onnx::TensorProto& tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

std::string why_not_numbers(const onnx::TensorProto& tensor, std::size_t count) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return "lie in another file; export the model into one file (in PyTorch: external_data=False)";
  if (tensor.data_type() != onnx::TensorProto::FLOAT)
    return fmt::format("are not fp32 (ONNX's data type {}); export the model in fp32", tensor.data_type());
  const std::size_t there = tensor.has_raw_data()
                                ? tensor.raw_data().size()
                                : static_cast<std::size_t>(tensor.float_data_size()) * sizeof(float);
  if (there == count * sizeof(float)) return "";
  return fmt::format("are {} {}, and its shape takes {}; the file is damaged", there, plural(there, "byte"),
                     count * sizeof(float));
}

void copy_numbers(const onnx::TensorProto& tensor, std::span<float> to) {
  LOCKSTEP_CHECK(why_not_numbers(tensor, to.size()).empty());
  if (tensor.has_raw_data()) {
    std::memcpy(to.data(), tensor.raw_data().data(), to.size_bytes());
  } else {
    std::ranges::copy(tensor.float_data(), to.begin());
  }
}

std::vector<std::int64_t> integers_of(const onnx::TensorProto& tensor) {
  constexpr std::size_t kMost = 16;
  if (tensor.data_type() != onnx::TensorProto::INT64) return {};
  if (!tensor.has_raw_data())
    return tensor.int64_data_size() > static_cast<int>(kMost)
               ? std::vector<std::int64_t>()
               : std::vector<std::int64_t>(tensor.int64_data().begin(), tensor.int64_data().end());
  const std::string& bytes = tensor.raw_data();
  std::vector<std::int64_t> numbers(std::min(bytes.size() / sizeof(std::int64_t), kMost));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(std::int64_t));
  return numbers;
}

}  // namespace lockstep
