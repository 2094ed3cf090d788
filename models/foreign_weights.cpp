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
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep {

std::string first_and_last(const std::vector<std::string>& all) {
  constexpr std::size_t kFew = 8;
  if (all.size() <= kFew) return fmt::format("{}", fmt::join(all, ", "));
  return fmt::format("{}, {}, ..., {}", all[0], all[1], all.back());
}

namespace {

/// PyTorch's counter beside the running statistics, which is no part of a network.
constexpr std::string_view kCounter = "num_batches_tracked";

using Tensors = std::vector<Parameter>;

std::vector<std::size_t> shape_of(const Parameter& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

/// Numbers of 16 bits are fp32 numbers, too, so nothing is rounded.
bool can_be_taken(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

bool fits(const TensorView& found, const Parameter& tensor) {
  return can_be_taken(found.dtype) && found.shape == shape_of(tensor);
}

/// Tensors of the file whose names begin with some words and go on as those of the network.
struct WordsFit {
  std::size_t fitting = 0, named = 0;   ///< tensors of the network's shape, and of any
  const TensorView* example = nullptr;  ///< the first that fits
};

/// By the words that begin them. Views are of the file's names.
std::map<std::string_view, WordsFit> fits_by_words(const SafetensorsFile& file, const Tensors& tensors) {
  std::map<std::string_view, const Parameter*> wanted;
  std::size_t longest = 0;
  for (const Parameter& tensor : tensors) {
    wanted[tensor.name] = &tensor;
    longest = std::max(longest, tensor.name.size());
  }
  std::map<std::string_view, WordsFit> result;
  for (const TensorView& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    for (std::size_t i = name.size() - std::min(name.size(), longest); i < name.size(); ++i) {
      const auto found = i == 0 || name[i - 1] == '.' ? wanted.find(name.substr(i)) : wanted.end();
      if (found == wanted.end()) continue;
      WordsFit& fit = result[name.substr(0, i)];
      ++fit.named;
      if (!fits(tensor, *found->second)) continue;
      ++fit.fitting;
      if (fit.example == nullptr) fit.example = &tensor;
    }
  }
  return result;
}

/// "_orig_mod.module.": the words without which most tensors fit. A layer inside may have the name of another layer, so
/// longer words with this beginning are no rivals.
std::string words_to_leave_out(const SafetensorsFile& file, const Tensors& tensors, const std::string& path) {
  const auto all = fits_by_words(file, tensors);
  const auto best = std::ranges::max_element(
      all, {}, [](const auto& entry) { return std::pair(entry.second.fitting, entry.second.named); });
  if (best == all.end()) return "";
  const auto shown = [](const auto& entry) {
    return fmt::format("{} ({})", entry.first.empty() ? "as they are" : "without " + quoted_text(entry.first),
                       printable_line(entry.second.example->name));
  };
  for (const auto& entry : all)
    if (entry.second.fitting > 0 && !entry.first.starts_with(best->first))
      throw DataError(
          fmt::format("{}: its names are the model's both {} and {}; write a file that has only the tensors "
                      "that are meant",
                      path, shown(*best), shown(entry)));
  return std::string(best->first);
}

float widened_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31,
                      fraction = bits & 1023;
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign == 0 ? 1.F : -1.F);
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;  // 127 - 15
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float widened_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// @param to  as many as the tensor's
void take_numbers(const TensorView& tensor, float* to) {
  if (tensor.dtype == "F32") {
    std::memcpy(to, tensor.bytes.data(), tensor.bytes.size());
    return;
  }
  const auto widened = tensor.dtype == "F16" ? widened_half : widened_bfloat;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(std::uint16_t)) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + at, sizeof bits);
    *to++ = widened(bits);
  }
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

/// A tensor that its layer of the network does not have would be dropped, and the rest be another
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

FittingWeights take_what_fits(const SafetensorsFile& file, const std::string& path, const Tensors& tensors,
                              std::span<float> weights) {
  FittingWeights result;
  result.words = words_to_leave_out(file, tensors, path);
  std::set<std::string> names, narrow;
  for (const Parameter& tensor : tensors) {
    names.insert(result.words + tensor.name);
    const TensorView* found = file.find(result.words + tensor.name);
    if (found != nullptr && fits(*found, tensor)) {
      take_numbers(*found, weights.data() + tensor.offset);
      if (found->dtype != "F32") narrow.insert(in_small_letters(found->dtype));
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
  result.widened = fmt::format("{}", fmt::join(narrow, " and "));
  return result;
}

}  // namespace

FittingWeights read_foreign_weights(const SafetensorsFile& file, const std::string& path,
                                    const Network& network, std::span<float> weights, WeightsFit fit) {
  FittingWeights fitting = take_what_fits(file, path, network.parameters().tensors(), weights);
  const auto& [words, widened, taken, fresh, left_over] = fitting;
  const std::string others = left_over.empty() ? "nothing" : first_and_last(left_over);
  if (taken.empty())
    throw DataError(fmt::format(
        "{}: none of its tensors has the name and shape of one of the model's: the model has {}; the file "
        "has, beside those, {}. Name the model's layers as the file does, or write a file with the model's "
        "names (in PyTorch: safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\"))",
        path, first_and_last(fresh), others));
  if (in_small_letters(path).ends_with(".onnx")) refuse_folded(file, words, network, path);
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
