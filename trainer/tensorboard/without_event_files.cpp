// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Event files in a build without Protocol Buffers: there are none.
#include "common/error.hpp"
#include "trainer/tensorboard/event_file.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {

bool writes_event_files() {
  return false;
}

EventFile::EventFile(Env& env, const std::string& directory) : file_(next_event_file(env, directory)) {
  LOCKSTEP_CHECK(writes_event_files());  // the job was refused, or the command
}

void EventFile::start_again_at(std::int64_t /*step*/) {}
void EventFile::add_line(const nlohmann::ordered_json& /*event*/) {}
void EventFile::add_graph(std::span<const GraphNode> /*nodes*/) {}
void EventFile::add_job(const std::map<std::string, std::string>& /*keys*/) {}
void EventFile::add_picture(const std::string& /*tag*/, std::int64_t /*step*/, int /*width*/, int /*height*/,
                            std::string_view /*png*/) {}

}  // namespace lockstep
