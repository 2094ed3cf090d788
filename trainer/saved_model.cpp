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

Network recorded_network(const CheckpointFacts& facts, const std::string& checkpoint) {
  const Description model(facts.model, checkpoint);
  const ImageShape input{model.number<int>("channels"), model.number<int>("height"),
                         model.number<int>("width")};
  try {
    return Network::parse(model.text("yaml"), checkpoint, input, model.number<int>("classes"));
  } catch (const Error& error) {
    // Whatever is wrong with it, it is the file that is damaged, not the command line.
    if (error.code() != ExitCode::kUsage) throw;
    throw DataError(fmt::format("{} (the model in its manifest)", error.what()));
  }
}

SavedModel load_saved_model(const std::string& path) {
  Env& env = Env::posix();
  const auto [directory, checkpoint, damaged] =
      open_checkpoint(env, path, [](const std::string& damage) { print_error(damage); });
  const Description model(checkpoint.facts.model, directory);
  SavedModel saved{.network = recorded_network(checkpoint.facts, directory),
                   .weights = AlignedBuffer<float>(checkpoint.weights.size()),
                   .set = model.text("set"),
                   .mean = model.number<double>("mean"),
                   .std = model.number<double>("std"),
                   .checkpoint = directory};
  if (saved.network.parameters().size != checkpoint.weights.size()) {
    throw DataError(fmt::format("{}: {} weights, but its model has {} parameters", directory,
                                checkpoint.weights.size(), saved.network.parameters().size));
  }
  std::copy(checkpoint.weights.begin(), checkpoint.weights.end(), saved.weights.data());
  return saved;
}

}  // namespace lockstep
