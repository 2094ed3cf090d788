// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables about checkpoints.
#include "trainer/checkpoint/inspect.hpp"

#include "common/text/printable.hpp"
#include "common/text/text_layout.hpp"
#include "kernels/numerics/exact_sum.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/published_hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace lockstep {
namespace {

/// Two spaces at least stand between name and value, below which a terminal's next line begins.
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
  text += line("epochs done",
               fmt::format("{}, and {} of the next", facts.epoch, counted(facts.step_in_epoch, "step")));
  text += line("seed", fmt::format("{}", facts.seed));
  if (facts.epoch_samples > 0)
    text += line("epoch so far",
                 fmt::format("{}, loss {:.6f}, {:.2f} % correct", counted(facts.epoch_samples, "sample"),
                             facts.epoch_loss_sum / static_cast<double>(facts.epoch_samples),
                             100.0 * static_cast<double>(facts.epoch_correct) /
                                 static_cast<double>(facts.epoch_samples)));
  if (facts.test_accuracy) text += line("test accuracy", fmt::format("{:.2f} %", 100 * *facts.test_accuracy));
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

/// A longer name gets a line of its own.
std::string tensor_row(const std::string& name, const std::vector<std::size_t>& shape,
                       std::span<const float> values) {
  std::string row =
      fmt::format("{:{}} {:17}", name, kNameColumns, fmt::format("[{}]", fmt::join(shape, ", ")));
  if (name.size() > kNameColumns) row.insert(name.size(), "\n" + std::string(kNameColumns, ' '));
  if (values.empty()) return row + " no elements\n";
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  const auto odd = std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  row += fmt::format(" {:>10.4g} {:>10.4g} {:>10.4g}\n", *smallest, *largest, mean);
  return odd == 0 ? row
                  : row + fmt::format("  {} of {} NaN or infinite\n", odd, counted(values.size(), "element"));
}

std::string arena_rows(const std::vector<CheckpointParameter>& parameters, const std::string& prefix,
                       std::span<const float> arena) {
  std::string text;
  for (const CheckpointParameter& parameter : parameters) {
    const std::size_t size = arena_size({parameter});
    text += tensor_row(prefix + parameter.name, parameter.shape, arena.first(size));
    arena = arena.subspan(size);
  }
  return text;
}

}  // namespace

std::string inspect_checkpoint(const std::string& path, const CheckpointState& state) {
  std::string text = line("checkpoint", path) + facts_text(state.facts);
  text += fmt::format("\n{:{}} {:17} {:>10} {:>10} {:>10}\n", "tensor", kNameColumns, "shape", "smallest",
                      "largest", "mean");
  text += arena_rows(state.facts.tensors(), "", state.weights);
  for (const OptimizerBuffer& buffer : state.optimizer)
    text += arena_rows(state.facts.parameters, tensor_prefix(buffer.name), buffer.values);
  return text + fmt::format("\nweights sha256 {}\n", weights_sha256(state.weights));
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

}  // namespace lockstep
