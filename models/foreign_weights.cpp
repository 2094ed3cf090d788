// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tensors of one name belong together; what is missing, left over or of another shape is said.
#include "models/foreign_weights.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace lockstep {

std::string first_and_last(const std::vector<std::string>& all) {
  constexpr std::size_t kFew = 8;
  if (all.size() <= kFew) return fmt::format("{}", fmt::join(all, ", "));
  return fmt::format("{}, {}, ..., {}", all[0], all[1], all.back());
}

namespace {

/// What PyTorch counts beside the running statistics is no part of a network.
constexpr std::string_view kCounter = "num_batches_tracked";

using Tensors = std::vector<Parameter>;

std::vector<std::size_t> shape_of(const Parameter& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

/// The words that all names begin with, up to a length that no word has. A name without a dot is of no module.
std::string common_beginning(const SafetensorsFile& file) {
  constexpr std::size_t kLongest = 256;
  std::optional<std::string> common;
  for (const TensorView& tensor : file.tensors()) {
    if (tensor.name.find('.') == tensor.name.npos) continue;
    if (!common) common = tensor.name.substr(0, kLongest);
    common->erase(std::ranges::mismatch(*common, tensor.name).in1, common->end());
  }
  return common.value_or("");
}

/// "_orig_mod.module.": as many of the words that begin all names as leave most of the network's.
std::string words_to_leave_out(const SafetensorsFile& file, const Tensors& tensors) {
  const auto found_after = [&](const std::string& words) {
    return std::ranges::count_if(
        tensors, [&](const Parameter& tensor) { return file.find(words + tensor.name) != nullptr; });
  };
  std::string best;
  auto most = found_after(best);
  const std::string common = common_beginning(file);
  for (std::size_t dot = common.find('.'); dot != common.npos; dot = common.find('.', dot + 1)) {
    const std::string words = common.substr(0, dot + 1);
    if (const auto found = found_after(words); found > most) most = found, best = words;
  }
  return best;
}

bool fits(const TensorView* found, const Parameter& tensor) {
  return found != nullptr && found->dtype == "F32" && found->shape == shape_of(tensor);
}

/// "[5, 50]", or "F16 [5, 50]" where it is not fp32.
std::string shown(const TensorView& tensor) {
  return fmt::format("{}[{}]", tensor.dtype == "F32" ? "" : tensor.dtype + " ",
                     fmt::join(tensor.shape, ", "));
}

void refuse_folded(const SafetensorsFile& file, const std::string& words, const Network& network,
                   const std::string& path) {
  for (const Parameter& kept : network.parameters().kept)
    if (file.find(words + kept.name) == nullptr)
      throw DataError(fmt::format(
          "{}: has no {}: its exporter may have folded batch normalisation into the convolutions, under "
          "whose "
          "names other numbers lie then; export again without that (in PyTorch: optimize=False; with "
          "dynamo=False: training=TrainingMode.PRESERVE)",
          path, kept.name));
}

/// A tensor of one of the network's layers that the layer does not have would be dropped, and the rest be another
/// network.
void require_whole_layers(const FittingWeights& fitting, const Network& network, const std::string& path) {
  for (const std::string& name : fitting.left_over) {
    const std::size_t begin = name.starts_with(fitting.words) ? fitting.words.size() : 0;
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos || dot < begin) continue;
    const std::string layer = name.substr(begin, dot - begin);
    if (std::ranges::find(network.layers(), layer, &Layer::name) != network.layers().end())
      throw DataError(fmt::format("{}: it has {}, but the model's {} has none; give both the same layers",
                                  path, quoted_text(name), layer));
  }
}

FittingWeights take_what_fits(const SafetensorsFile& file, const Tensors& tensors, std::span<float> weights) {
  FittingWeights result;
  result.words = words_to_leave_out(file, tensors);
  std::set<std::string> names;
  for (const Parameter& tensor : tensors) {
    names.insert(result.words + tensor.name);
    const TensorView* found = file.find(result.words + tensor.name);
    if (fits(found, tensor)) {
      std::memcpy(weights.data() + tensor.offset, found->bytes.data(), found->bytes.size());
      result.taken.push_back(tensor.name);
    } else {
      result.fresh.push_back(
          fmt::format("{} [{}]{}", tensor.name, fmt::join(tensor.shape, ", "),
                      found == nullptr ? "" : fmt::format(", of which the file has {}", shown(*found))));
    }
  }
  for (const TensorView& tensor : file.tensors())
    if (!names.contains(tensor.name) && !tensor.name.ends_with(kCounter))
      result.left_over.push_back(printable_line(tensor.name));
  return result;
}

}  // namespace

FittingWeights read_foreign_weights(const SafetensorsFile& file, const std::string& path,
                                    const Network& network, std::span<float> weights, WeightsFit fit) {
  FittingWeights fitting = take_what_fits(file, network.parameters().tensors(), weights);
  const auto& [words, taken, fresh, left_over] = fitting;
  const std::string others = left_over.empty() ? "nothing" : first_and_last(left_over);
  if (taken.empty())
    throw DataError(fmt::format(
        "{}: none of its tensors has the name and shape of one of the model's: the model has {}; the file "
        "has, beside those, {}. Name the model's layers as the file does, or write a file with the model's "
        "names (in PyTorch: safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\"))",
        path, first_and_last(fresh), others));
  if (path.ends_with(".onnx")) refuse_folded(file, words, network, path);
  if (fit == WeightsFit::kPart) return fitting;
  require_whole_layers(fitting, network, path);
  if (!fresh.empty())
    throw DataError(fmt::format(
        "{}: has nothing that fits the model's {}; it has, beside what fits, {}. "
        "train.partial=true takes what fits, {} of {}, and starts the rest afresh",
        path, first_and_last(fresh), others, taken.size(), counted(taken.size() + fresh.size(), "tensor")));
  return fitting;
}

}  // namespace lockstep
