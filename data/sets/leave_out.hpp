// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A list of training samples that a run leaves out: data.leave_out.
///
/// Format: a text file with a sample a line. It gives its place in the training half, from 0, or the name of
/// its picture as lists of names and messages have it, such as train/cat/1.jpg. Spaces around a line
/// and empty lines do not count. A comment is a line that begins with # and a space or another #, or what
/// follows a place, a space and #: names may have a # at any other place.
#pragma once

#include "data/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct LeaveOutList {
  struct Entry {
    std::string text;  ///< a place or a name
    std::size_t line = 0;
  };

  std::string file;            ///< for messages
  std::vector<Entry> entries;  ///< each text once
  std::string sha256;          ///< over the sorted texts, a line each: comments and order do not count

  /// The value of data.leave_out in a run's records: "sha256:..."
  std::string contents() const { return "sha256:" + sha256; }
};

/// @throws DataError  naming file and line: a sample twice, no printable text; or there are no samples
LeaveOutList parse_leave_out(std::string_view text, const std::string& file);
/// Reads the list from a file. @throws MissingDataError, IoError; DataError also if it is larger than any list may be
LeaveOutList read_leave_out(const std::string& file);

/// The places of the samples in the training half, which is whole; ascending.
/// @throws DatasetOptionError  naming file and line: a place beyond the last, a name of no picture or of several, a
///                             sample that is named twice; or none would be left to train on
/// @throws DataError  a name is looked for, and the set's list of names is damaged
std::vector<std::int32_t> left_out_places(const LeaveOutList& list, const TrainTestData& data);
/// Refuses what left_out_places() refuses of places in a training half of so many samples. Names are not looked up.
void check_left_out(const LeaveOutList& list, std::int64_t samples);

}  // namespace lockstep
