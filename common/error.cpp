// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exit codes and words for exceptions that are not ours.
#include "common/error.hpp"

#include "common/machine.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace lockstep {

Explanation explain(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return {ours->code(), ours->what()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr)
    return {
        ExitCode::kDeviceUnavailable,
        advice("not enough memory; start fewer ranks or threads on this machine, take a smaller model, data "
               "set or {global_batch}, or raise the limit (ulimit -v, or Slurm's --mem)")};
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {ExitCode::kIo,
            fmt::format("{}: cannot be examined: {}; check the disk, and this user's permissions",
                        file->path1().string(), file->code().message())};
  if (const auto* system = dynamic_cast<const std::system_error*>(&error);
      system != nullptr && is_missing_thread(*system))
    return {ExitCode::kDeviceUnavailable, explain_missing_thread()};
  return {ExitCode::kInternal, fmt::format("internal error: {}; please report this", error.what())};
}

void throw_check_failure(const char* condition, const char* file, int line) {
  throw InternalError(
      fmt::format("internal error at {}:{}: '{}' does not hold; please report this", file, line, condition));
}

// One spelling for the process, and the places in a text where it goes.

namespace {

Spelling current_spelling;

}  // namespace

void spell_advice_as(const Spelling& spelling) {
  current_spelling = spelling;
}

const Spelling& spelling() {
  return current_spelling;
}

std::string advice(std::string_view text) {
  return fmt::format(
      fmt::runtime(text), fmt::arg("global_batch", current_spelling.global_batch),
      fmt::arg("per_rank_batch", current_spelling.per_rank_batch), fmt::arg("grain", current_spelling.grain),
      fmt::arg("sample_counts", current_spelling.sample_counts), fmt::arg("device", current_spelling.device),
      fmt::arg("backend", current_spelling.backend), fmt::arg("kernels", current_spelling.kernels),
      fmt::arg("timeout", current_spelling.timeout),
      fmt::arg("run_directory", current_spelling.run_directory),
      fmt::arg("learning_rate", current_spelling.learning_rate), fmt::arg("mean", current_spelling.mean),
      fmt::arg("deviation", current_spelling.deviation),
      fmt::arg("initial_weights", current_spelling.initial_weights));
}

}  // namespace lockstep
