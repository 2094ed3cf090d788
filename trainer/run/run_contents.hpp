// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run leaves behind: the events of metrics.jsonl with their fields, and the files of its directory. The
/// reference pages are made from these tables, and tests compare them with what runs write.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

/// A field that an event has. A new field of an event is a row of events_of_runs().
struct EventField {
  std::string_view name;     ///< "loss"; of an object in the event "pipeline.bubble"; N stands for a number
  std::string_view type;     ///< "whole number", "number", "number or null", "text", "true or false"
  std::string_view unit;     ///< "seconds", "samples"; "" where it has none
  std::string_view meaning;  ///< without a full stop
  std::string_view when = "always";
};

/// A line of metrics.jsonl: {"event":NAME, and the fields in their order}.
struct RunEvent {
  std::string_view name;
  std::string_view when;  ///< is it written: a sentence
  std::vector<EventField> fields;
};

/// All events, in the order in which a run comes to them.
const std::vector<RunEvent>& events_of_runs();

/// A file of a run directory. A new one is a row of files_of_runs().
struct RunFile {
  /// In the run directory. N stands for a number; a name ending in / is a folder of other files.
  std::string_view path;
  std::string_view meaning;  ///< without a full stop
  std::string_view when = "always";
};

/// All files that a run leaves, in the order of the page.
const std::vector<RunFile>& files_of_runs();

}  // namespace lockstep
