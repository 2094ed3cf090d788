// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RUN/status.json, written and read by one list of fields.
#include "trainer/checkpoint/run_status.hpp"

#include "common/json_text.hpp"
#include "trainer/checkpoint/json_fields.hpp"

namespace lockstep {
namespace {

constexpr auto kNoteFields = [](auto&& archive, RunStatusNote& note) {
  std::int64_t version = 1;
  archive("version", version);
  archive.require(version == 1, "version", "1");
  archive("state", note.state);
  archive("step", note.step);
  archive("exclude_hosts", note.exclude_hosts);
};

}  // namespace

void write_status(Env& env, const std::string& run_dir, const RunStatusNote& note) {
  replace_file(env, run_dir + "/" + kStatusFile, json_text(json_of_fields(note, kNoteFields), 1) + "\n");
}

std::optional<RunStatusNote> read_status(Env& env, const std::string& run_dir) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const auto read = [&] {
    const auto bytes = env.read_first(run_dir + "/" + kStatusFile, kMostBytes);
    return std::optional(
        read_fields<RunStatusNote>(parse_json_or_discard(as_text(bytes)), kStatusFile, kNoteFields));
  };
  return or_if_unreadable(read, std::nullopt);
}

}  // namespace lockstep
