// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RUN/doubt.json: written when a run stops because a rank's numbers were wrong for longer than a step. It is
/// removed when a run has gone on from an earlier checkpoint.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

constexpr const char* kDoubtFormat = "lockstep doubt";
constexpr std::int64_t kDoubtVersion = 1;
constexpr std::uint64_t kMostDoubtBytes = 1 << 20;

std::string doubt_path(const std::string& run_dir) {
  return run_dir + "/" + kDoubtFile;
}

/// @throws DataError, ConfigError
CheckpointDoubt parsed_doubt(const std::vector<std::byte>& bytes, const std::string& path) {
  const auto json = parse_json_or_discard(as_text(bytes));
  const auto field = [&](const char* key) {
    return json.is_object() ? json.value(key, nlohmann::json()) : nlohmann::json();
  };
  const auto version = field("version"), sure = field("sure_step"), found = field("found_step"),
             what = field("what");
  if (field("format") != kDoubtFormat || !version.is_number_integer() || !sure.is_number_integer() ||
      !found.is_number_integer() || !what.is_string() || sure < 0)
    throw DataError(fmt::format(
        "{}: is damaged: it listed the doubtful checkpoints of this run, since numbers of a rank were "
        "wrong; remove it if you are sure of them ('lockstep prove' tells)",
        path));
  if (version != kDoubtVersion)
    throw ConfigError(
        fmt::format("{}: format version {}, this program reads version {}; use the release that wrote it",
                    path, version.get<std::int64_t>(), kDoubtVersion));
  return {.sure_step = sure, .found_step = found, .what = what};
}

}  // namespace

void write_doubt(Env& env, const std::string& run_dir, const CheckpointDoubt& doubt) {
  const nlohmann::ordered_json json = {{"format", kDoubtFormat},
                                       {"version", kDoubtVersion},
                                       {"sure_step", doubt.sure_step},
                                       {"found_step", doubt.found_step},
                                       {"what", doubt.what}};
  replace_file(env, doubt_path(run_dir), json_text(json, 1) + "\n");
}

std::optional<CheckpointDoubt> read_doubt(Env& env, const std::string& run_dir) {
  const std::string path = doubt_path(run_dir);
  return read_patiently(env, [&]() -> std::optional<CheckpointDoubt> {
    if (env.entry(path).kind == EntryKind::kNothing) return std::nullopt;
    return parsed_doubt(env.read_first(path, kMostDoubtBytes), path);
  });
}

void remove_doubt(Env& env, const std::string& run_dir) {
  if (env.entry(doubt_path(run_dir)).kind == EntryKind::kNothing) return;
  env.remove_file(doubt_path(run_dir));
  env.sync_directory(run_dir);
}

std::vector<CheckpointEntry> sure_checkpoints(Env& env, const std::string& run_dir) {
  auto entries = list_checkpoints(env, run_dir);
  if (const auto doubt = read_doubt(env, run_dir))
    std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step > doubt->sure_step; });
  return entries;
}

std::string why_in_doubt(const CheckpointDoubt& doubt) {
  return fmt::format("saved after step {}, and at step {} {}", doubt.sure_step, doubt.found_step, doubt.what);
}

std::string require_sure_checkpoint(Env& env, const std::string& run_dir) {
  const auto doubt = read_doubt(env, run_dir);
  const auto all = list_checkpoints(env, run_dir);
  if (!doubt || all.empty() || all.front().step <= doubt->sure_step) return "";
  if (all.back().step <= doubt->sure_step)
    return fmt::format("{}: newer checkpoints are in doubt and passed over: they were {}", run_dir,
                       why_in_doubt(*doubt));
  throw DataError(
      fmt::format("{}: all its checkpoints are in doubt: they were {}. Begin anew with run.resume=never "
                  "(previous-N keeps what is there), or name one all the same, such as {}",
                  run_dir, why_in_doubt(*doubt), all.front().path));
}

}  // namespace lockstep
