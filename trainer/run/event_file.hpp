// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Event files, which TensorBoard reads while they grow: the numbers of metrics.jsonl as scalars, pictures, the graph
/// of the network, the job as hyperparameters.
#pragma once

#include "common/env.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A file is a list of records: length (8 bytes), masked CRC-32C of these, bytes, masked CRC-32C of those; all least
// byte first. It is TensorFlow's TFRecord.

/// Castagnoli's polynomial.
std::uint32_t crc32c(std::string_view bytes);
std::string event_record(std::string_view bytes);

/// "events.out.tfevents.SECONDS.lockstep": TensorBoard reads the files of a folder by their names' order.
bool is_event_file(std::string_view name);
/// The path of a file that is behind all event files of the directory. @throws IoError
std::string next_event_file(Env& env, const std::string& directory);

struct GraphNode {
  std::string name;
  std::string operation;                 ///< "conv2d 10 of 5x5"
  std::vector<std::int64_t> output;      ///< its shape
  std::vector<std::string> inputs = {};  ///< names of other nodes
};

/// A new file in the folder of a run. Each call is in the file when it returns.
/// All throw IoError: then the file ends with a record that may be torn, and no more is to be written.
class EventFile {
 public:
  /// @throws IoError
  EventFile(Env& env, const std::string& directory);

  /// What earlier files tell of this step and of later ones is void from here on.
  void start_again_at(std::int64_t step);
  /// A line of metrics.jsonl: each number of a "step", "loss", "evaluation" or "epoch" becomes the scalar EVENT/KEY
  /// of its step; an "end" ends the session. Others are passed over.
  void add_line(const nlohmann::ordered_json& event);
  void add_graph(std::span<const GraphNode> nodes);
  /// @param keys  those of the job, as texts
  void add_job(const std::map<std::string, std::string>& keys);
  /// @param png  the file's bytes
  void add_picture(const std::string& tag, std::int64_t step, int width, int height, std::string_view png);

 private:
  AppendFile file_;
};

}  // namespace lockstep
