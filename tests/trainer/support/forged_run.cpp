// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Forgeries are written by the code that writes honest files.
#include "tests/trainer/support/forged_run.hpp"

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/json_text.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/checkpoint/trail.hpp"

namespace lockstep::testing {

std::vector<std::int64_t> checkpoint_steps(const std::string& run) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(Env::posix(), run)) steps.push_back(entry.step);
  std::ranges::reverse(steps);
  return steps;
}

void forge_checkpoint(const std::string& run, std::int64_t step,
                      const std::function<void(CheckpointState&)>& change) {
  Env& env = Env::posix();
  const std::string path = run + "/" + kCheckpointsDirectory + "/" + checkpoint_name(step);
  CheckpointState state = load_checkpoint(env, path);
  change(state);
  save_checkpoint(env, run, state);
}

void forge_trail(const std::string& run,
                 const std::function<void(TrailHead&, std::vector<TrailRecord>&)>& change) {
  Env& env = Env::posix();
  const std::string path = run + "/" + kTrailFile;
  const Trail trail(env.read(path), path);
  TrailHead head = trail.head();
  std::vector<TrailRecord> records;
  for (std::int64_t i = 0; i < trail.records(); ++i) records.push_back(trail.record(i));
  change(head, records);
  auto bytes = write_trail_head(head);
  TrailPosition position = trail_start(bytes);
  for (const TrailRecord& record : records) {
    const auto more = write_trail_record(head, record, position);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  replace_file(env, path, bytes);
  const Trail forged(bytes, path);
  for (const std::int64_t step : checkpoint_steps(run)) {
    const TrailPosition at = forged.position(forged.records_up_to(step));
    forge_checkpoint(run, step, [&](CheckpointState& state) {
      state.facts.trail = {at.records, hex(at.chain)};
    });
  }
}

void forge_metrics(const std::string& run, const std::function<void(std::vector<nlohmann::json>&)>& change) {
  Env& env = Env::posix();
  const std::string path = run + "/metrics.jsonl";
  const auto bytes = env.read(path);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<nlohmann::json> events;
  while (!rest.empty()) {
    const std::string_view line = first_lines(rest, 1);
    events.push_back(parse_json(line));
    rest.remove_prefix(line.size());
  }
  change(events);
  std::string text;
  for (const auto& event : events) text += json_text(event) + "\n";
  replace_file(env, path, std::as_bytes(std::span(text)));
  for (const std::int64_t step : checkpoint_steps(run)) {
    forge_checkpoint(run, step, [&](CheckpointState& state) {
      if (!state.facts.metrics) return;
      const auto noted = first_lines(text, state.facts.metrics->count);
      state.facts.metrics->sha256 = hex(sha256(std::as_bytes(std::span(noted))));
    });
  }
}

}  // namespace lockstep::testing
