// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Describes a checkpoint, and the differences between two.
#include "trainer/checkpoint/inspect.hpp"

#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/published_hash.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace lockstep {

// Tables about checkpoints.

namespace {

/// At least two spaces between name and value, under which a terminal's next line begins.
std::string line(const std::string& name, const std::string& value) {
  return fmt::format("{:13}  {}\n", name, printable_line(value));
}

/// Some values are lists, an entry a line.
std::string on_one_line(std::string value) {
  for (std::size_t at = value.find('\n'); at != value.npos; at = value.find('\n', at))
    value.replace(at, 1, ", ");
  return value;
}

std::string facts_text(const CheckpointFacts& facts) {
  std::string text = line("step", fmt::format("{}", facts.step));
  if (!facts.average.empty()) text += line("weights", "their average " + facts.average);
  text += line("epochs done",
               fmt::format("{}, and {} of the next", facts.epoch, counted(facts.step_in_epoch, "step")));
  text += line("seed", fmt::format("{}", facts.seed));
  if (facts.epoch_samples > 0)
    text += line("epoch so far",
                 fmt::format("{}, loss {:.6f}, {} % correct", counted(facts.epoch_samples, "sample"),
                             facts.epoch_loss_sum / static_cast<double>(facts.epoch_samples),
                             percent_text(static_cast<double>(facts.epoch_correct) /
                                          static_cast<double>(facts.epoch_samples))));
  if (facts.validation_accuracy)
    text += line("validation", fmt::format("accuracy {} %", percent_text(*facts.validation_accuracy)));
  if (facts.test_accuracy) text += line("test accuracy", percent_text(*facts.test_accuracy) + " %");
  if (const std::string digest = computation_digest(facts); !digest.empty())
    text += line("computation", digest);
  text += line("buckets", facts.bucket_plan);
  for (const auto& [key, value] : facts.world) text += line("written by", fmt::format("{} {}", key, value));
  for (const auto& [key, value] : facts.data)
    text += line("data", fmt::format("{}: {}", key, on_one_line(value)));
  for (const auto& [key, value] : facts.job) text += line("job", fmt::format("{}: {}", key, value));
  return text;
}

constexpr std::size_t kNameColumns = 27;  // all columns together fit a terminal of 80

std::span<const float> numbers_of(const TensorView& tensor) {
  return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

nlohmann::ordered_json tensor_json(const TensorView& tensor) {
  nlohmann::ordered_json json = {{"tensor", tensor.name}, {"shape", tensor.shape}};
  const auto values = numbers_of(tensor);
  if (values.empty()) return json;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  // Comparisons with a NaN are false, so that beside one any number may seem to be the smallest.
  const auto nan = std::ranges::find_if(values, [](float v) { return std::isnan(v); });
  json["smallest"] = nan == values.end() ? *smallest : *nan;  // null where it is not finite
  json["largest"] = nan == values.end() ? *largest : *nan;
  json["mean"] = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  json["not_finite"] = std::ranges::count_if(values, [](float v) { return !std::isfinite(v); });
  return json;
}

nlohmann::ordered_json tensors_json(const CheckpointState& state) {
  return json_list(state.tensors(), tensor_json);
}

/// A longer name gets a line of its own.
std::string tensor_row(const nlohmann::ordered_json& tensor) {
  const std::string name = printable_line(tensor["tensor"].get<std::string>());
  const std::vector<std::size_t> shape = tensor["shape"];
  std::string row =
      fmt::format("{:{}} {:17}", name, kNameColumns, fmt::format("[{}]", fmt::join(shape, ", ")));
  if (name.size() > kNameColumns) row.insert(name.size(), "\n" + std::string(kNameColumns, ' '));
  if (!tensor.contains("mean")) return row + " no elements\n";
  row += fmt::format(" {:>10.4g} {:>10.4g} {:>10.4g}\n", tensor["smallest"].get<double>(),
                     tensor["largest"].get<double>(), tensor["mean"].get<double>());
  const auto odd = tensor["not_finite"].get<std::int64_t>();
  const std::size_t size = arena_size({{name, shape}});
  return odd == 0 ? row : row + fmt::format("  {} of {} NaN or infinite\n", odd, counted(size, "element"));
}

}  // namespace

std::string inspect_checkpoint(const std::string& path, const CheckpointState& state) {
  std::string text = line("checkpoint", path) + facts_text(state.facts);
  text += fmt::format("\n{:{}} {:17} {:>10} {:>10} {:>10}\n", "tensor", kNameColumns, "shape", "smallest",
                      "largest", "mean");
  for (const auto& tensor : tensors_json(state)) text += tensor_row(tensor);
  return text + fmt::format("\nweights sha256 {}\n", weights_sha256(state.weights));
}

nlohmann::ordered_json inspect_json(const std::string& path, const CheckpointState& state) {
  const CheckpointFacts& facts = state.facts;
  nlohmann::ordered_json json = {{"format", kInspectFormat},
                                 {"checkpoint", path},
                                 {"average", facts.average},
                                 {"test_accuracy", nullptr},
                                 {"validation_accuracy", nullptr}};
  json.update(facts_json(facts));
  json.update({{"computation", computation_digest(facts)},
               {"tensors", tensors_json(state)},
               {"weights_sha256", weights_sha256(state.weights)}});
  return json;
}

nlohmann::ordered_json checkpoints_json(const std::vector<CheckpointSummary>& newest_first) {
  return json_list(newest_first, [](const CheckpointSummary& checkpoint) -> nlohmann::ordered_json {
    return {{"checkpoint", checkpoint.path},
            {"step", checkpoint.step},
            {"epoch", checkpoint.epoch},
            {"step_in_epoch", checkpoint.step_in_epoch},
            {"test_accuracy", checkpoint.test_accuracy},
            {"validation_accuracy", checkpoint.validation_accuracy},
            {"damage", checkpoint.damage},
            {"unreadable", checkpoint.unreadable}};
  });
}

std::string checkpoints_text(const std::string& run_dir, const std::vector<CheckpointSummary>& newest_first,
                             const MeantCheckpoints& meant) {
  if (newest_first.empty()) return "";
  const bool validated =
      std::ranges::any_of(newest_first, [](const auto& one) { return one.validation_accuracy.has_value(); });
  const std::string of = validated ? "validation" : "test";
  std::vector<std::vector<std::string>> rows = {{"checkpoint", "epoch", of + " accuracy", ""}};
  for (const CheckpointSummary& checkpoint : newest_first) {
    std::string epoch = fmt::format("{}", checkpoint.epoch), accuracy = "-", trouble = checkpoint.trouble();
    if (checkpoint.step_in_epoch > 0)
      epoch += fmt::format(" + {}", counted(checkpoint.step_in_epoch, "step"));
    if (checkpoint.accuracy()) accuracy = percent_text(*checkpoint.accuracy()) + " %";
    if (!trouble.empty()) epoch = "-";
    std::vector<std::string> names;
    if (checkpoint.path == meant.last) names.emplace_back("@last");
    if (checkpoint.path == meant.best) names.emplace_back("@best");
    if (!trouble.empty()) names.push_back(std::move(trouble));
    rows.push_back({fmt::format("@step:{}", checkpoint.step), epoch, accuracy,
                    fmt::format("{}", fmt::join(names, " "))});
  }
  return fmt::format("checkpoints of {}\n{}", printable_line(run_dir), align_columns(rows, {2}));
}

Verification verify(Env& env, const std::string& path) {
  std::string text;
  const std::vector<Damage> damages = verify_checkpoint(env, path);
  for (const Damage& damage : damages) text += printable_line(to_string(damage)) + "\n";
  if (!damages.empty()) return {false, text};
  const Manifest manifest = load_manifest(env, path);
  std::size_t checksums = 1 + manifest.files.size();
  for (const FileRecord& file : manifest.files)
    for (const SectionRecord& section : file.sections) checksums += section.crc32s.size();
  return {true, fmt::format("{}: good: {}, {}\n", printable_line(path),
                            counted(1 + manifest.files.size(), "file"), counted(checksums, "checksum"))};
}

// Comparing checkpoints bit by bit.

namespace {

double distance(float a, float b) {
  const double difference = std::fabs(static_cast<double>(a) - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

TensorDifference diff_tensor(const TensorView& in_a, const TensorView& in_b) {
  const auto a = numbers_of(in_a), b = numbers_of(in_b);
  TensorDifference result{.tensor = in_a.name, .elements = a.size()};
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (result.different++ == 0) {
      result.first_index = result.largest_index = index_of(i, in_a.shape);
      result.first_a = a[i];
      result.first_b = b[i];
    }
    if (distance(a[i], b[i]) <= result.largest) continue;
    result.largest = distance(a[i], b[i]);
    result.largest_index = index_of(i, in_a.shape);
  }
  return result;
}

void diff_tensors(const std::vector<TensorView>& a, const std::vector<TensorView>& b,
                  std::vector<TensorDifference>* result) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    TensorDifference tensor = diff_tensor(a[i], b[i]);
    if (tensor.different > 0) result->push_back(std::move(tensor));
  }
}

const OptimizerBuffer* find_buffer(const CheckpointState& state, const std::string& name) {
  const auto found = std::ranges::find(state.optimizer, name, &OptimizerBuffer::name);
  return found == state.optimizer.end() ? nullptr : &*found;
}

void diff_optimizer(const CheckpointState& a, const CheckpointState& b, CheckpointDifference* result) {
  const auto& parameters = a.facts.parameters;
  for (const OptimizerBuffer& in_a : a.optimizer)
    if (const OptimizerBuffer* in_b = find_buffer(b, in_a.name))
      diff_tensors(tensors_of(parameters, in_a), tensors_of(parameters, *in_b), &result->tensors);
    else
      result->facts.push_back(fmt::format("{}: only in A", in_a.name));
  for (const OptimizerBuffer& in_b : b.optimizer)
    if (find_buffer(a, in_b.name) == nullptr)
      result->facts.push_back(fmt::format("{}: only in B", in_b.name));
}

std::vector<std::string> diff_facts(const CheckpointFacts& a, const CheckpointFacts& b) {
  std::vector<std::string> result;
  const auto compare = [&](const char* name, const auto& x, const auto& y) {
    if (x != y) result.push_back(fmt::format("{}: {} in A, {} in B", name, x, y));
  };
  compare("step", a.step, b.step);
  compare("epoch", a.epoch, b.epoch);
  compare("step_in_epoch", a.step_in_epoch, b.step_in_epoch);
  compare("seed", a.seed, b.seed);
  compare("epoch_samples", a.epoch_samples, b.epoch_samples);
  compare("epoch_correct", a.epoch_correct, b.epoch_correct);
  compare("epoch_loss_sum", a.epoch_loss_sum, b.epoch_loss_sum);
  for (const auto& [key, value] : a.job) {
    const auto found = b.job.find(key);
    compare(key.c_str(), value, found == b.job.end() ? "nothing" : found->second);
  }
  for (const auto& [key, value] : b.job)
    if (!a.job.contains(key)) compare(key.c_str(), std::string("nothing"), value);
  const auto compare_texts = [&](const std::string& of, const auto& in_a, const auto& in_b) {
    for (const auto& [key, value] : in_a) {
      const auto other = in_b.find(key);
      if (other == in_b.end() || value == other->second) continue;
      const bool is_long = (value + other->second).find('\n') != value.npos;  // layers, names of classes
      if (is_long) result.push_back(of + key + ": another in A than in B");
      if (!is_long) compare((of + key).c_str(), value, other->second);
    }
  };
  auto data = a.data;
  data.erase("directory");  // moving data changes nothing
  compare_texts("data ", data, b.data);
  compare_texts("model ", a.model, b.model);  // tensors may be alike where layers or normalisation are not
  return result;
}

std::string index_text(const std::vector<std::size_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ","));
}

/// Lines that fit a terminal of 80 columns, whatever the tensor's name.
std::string tensor_text(const TensorDifference& t) {
  return fmt::format(
      "{}: {} of {} differ\n"
      "  first    {}: {:.9g} in A, {:.9g} in B\n"
      "  largest  {}: {:.9g} apart\n",
      printable_line(t.tensor), with_thousands(static_cast<std::int64_t>(t.different)),
      counted(t.elements, "element"), index_text(t.first_index), t.first_a, t.first_b,
      index_text(t.largest_index), t.largest);
}

}  // namespace

CheckpointDifference diff_checkpoints(const CheckpointState& a, const CheckpointState& b) {
  CheckpointDifference result{.facts = diff_facts(a.facts, b.facts), .tensors = {}};
  if (a.facts.parameters != b.facts.parameters || a.facts.kept != b.facts.kept) {
    result.facts.emplace_back("parameters: other names or shapes: these are different models");
    result.same_model = false;
    return result;
  }
  diff_tensors(tensors_of(a.facts.tensors(), a.weights, ""), tensors_of(b.facts.tensors(), b.weights, ""),
               &result.tensors);
  diff_optimizer(a, b, &result);
  return result;
}

std::string to_text(const CheckpointDifference& difference) {
  if (difference.empty()) return "no difference: the same bits\n";
  std::string text;
  for (const std::string& fact : difference.facts) text += printable_line(fact) + "\n";
  if (difference.tensors.empty() && difference.same_model)
    return text + "weights and optimiser state that both have: the same bits\n";
  for (const TensorDifference& t : difference.tensors) text += tensor_text(t);
  return text;
}

nlohmann::ordered_json to_json(const CheckpointDifference& difference) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TensorDifference& t : difference.tensors)
    tensors.push_back({{"tensor", t.tensor},
                       {"elements", t.elements},
                       {"different", t.different},
                       {"first_index", t.first_index},
                       {"first_a", t.first_a},
                       {"first_b", t.first_b},
                       {"largest", t.largest},  // null where one of them is not a number
                       {"largest_index", t.largest_index}});
  return {{"format", kInspectFormat},
          {"same", difference.empty()},
          {"facts", difference.facts},
          {"tensors", tensors}};
}

}  // namespace lockstep
