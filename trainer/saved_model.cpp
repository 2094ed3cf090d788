// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/saved_model.hpp"

#include "kernels/runtime/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/rank_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lockstep {
namespace {

/// The entries of CheckpointFacts::model, with errors that name the checkpoint.
class Description {
 public:
  Description(const std::map<std::string, std::string>& entries, std::string path)
      : entries_(entries), path_(std::move(path)) {}

  const std::string& text(const std::string& key) const {
    const auto entry = entries_.find(key);
    if (entry == entries_.end())
      throw DataError(fmt::format("{}: the manifest does not say model.{}", path_, key));
    return entry->second;
  }

  template <typename Number>
  Number number(const std::string& key) const {
    const std::string& value = text(key);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size()) {
      throw DataError(fmt::format("{}: the manifest's model.{} is '{}', not a number", path_, key, value));
    }
    return result;
  }

 private:
  const std::map<std::string, std::string>& entries_;
  std::string path_;
};

/// The network that a manifest describes. What is wrong with it is damage, not a mistake in somebody's model
/// file.
Network recorded_network(const auto& model, const std::string& checkpoint) {
  const auto size = [&](const char* key) {
    const int value = model.template number<int>(key);
    if (value < 1)
      throw DataError(
          fmt::format("{}: the manifest's model.{} is {}, not 1 or more", checkpoint, key, value));
    return value;
  };
  const ImageShape input{size("channels"), size("height"), size("width")};
  try {
    return Network::parse(model.text("yaml"), checkpoint, input, size("classes"));
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    throw DataError(fmt::format("{}; the manifest's model is damaged", error.what()));
  }
}

void check_normalisation(double mean, double std, const std::string& checkpoint) {
  if (std::isfinite(mean) && std::isfinite(std) && std > 0) return;
  throw DataError(fmt::format("{}: the manifest's model.mean and model.std, {} and {}, cannot be", checkpoint,
                              mean, std));
}

}  // namespace

std::map<std::string, std::string> describe_model(const Job& job, const JobSetup& setup) {
  const ImageShape& input = setup.network.input_shape();
  return {{"yaml", setup.network.yaml()},
          {"channels", std::to_string(input.channels)},
          {"height", std::to_string(input.height)},
          {"width", std::to_string(input.width)},
          {"classes", std::to_string(setup.network.classes())},
          {"set", job.data.set},
          {"mean", fmt::format("{}", job.data.mean)},
          {"std", fmt::format("{}", job.data.std)}};
}

SavedModel load_saved_model(const std::string& path) {
  Env& env = Env::posix();
  const auto [directory, checkpoint, damaged] =
      open_checkpoint(env, path, [](const std::string& damage) { print_error(damage); });
  const Description model(checkpoint.facts.model, directory);
  SavedModel saved{.network = recorded_network(model, directory),
                   .weights = AlignedBuffer<float>(checkpoint.weights.size()),
                   .set = model.text("set"),
                   .mean = model.number<double>("mean"),
                   .std = model.number<double>("std"),
                   .checkpoint = directory};
  check_normalisation(saved.mean, saved.std, directory);
  if (saved.network.parameters().size != checkpoint.weights.size()) {
    throw DataError(fmt::format("{}: {} weights, but its model has {} parameters", directory,
                                checkpoint.weights.size(), saved.network.parameters().size));
  }
  std::copy(checkpoint.weights.begin(), checkpoint.weights.end(), saved.weights.data());
  return saved;
}

}  // namespace lockstep
