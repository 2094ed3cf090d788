// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables of wrong texts and what is said of them, as files beside their tests.
///
/// A line is a text ("\n" in it begins another line), and below, indented, is the whole message. One that
/// ends in "..." begins so. Texts above one message share it. "# TITLE" begins a section. "with A@B" puts
/// each text in place of its "@", and "at A" goes before each message, until the section ends.
#pragma once

#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::test {

inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

struct SaidOf {
  std::string title, text, message;

  /// Expects `said`, or its beginning.
  void expect(std::string said) const {
    std::string words = message;
    if (words.ends_with("...")) {
      words.resize(words.size() - 3);
      said.resize(std::min(said.size(), words.size()));
    }
    EXPECT_EQ(said, words) << title << ": " << text;
  }
};

/// @param path  of the table, from the root of the sources
inline std::vector<SaidOf> read_messages(const std::string& path) {
  std::ifstream table(source_path(path));
  std::vector<SaidOf> rows;
  std::size_t without_message = 0;
  std::string title, around, in_front;
  for (std::string line; std::getline(table, line);) {
    if (line.empty()) continue;
    if (line.starts_with("# ")) {
      title = line.substr(2);
      around = in_front = "";
    } else if (line.starts_with("with ")) {
      around = line.substr(5);
    } else if (line.starts_with("at ")) {
      in_front = line.substr(3);
    } else if (line.starts_with("    ")) {
      for (; without_message < rows.size(); ++without_message)
        rows[without_message].message = in_front + line.substr(4);
    } else {
      if (!around.empty()) line = std::string(around).replace(around.find('@'), 1, line);
      replace_all(line, "\\n", "\n");
      replace_all(line, "\\\n", "\\n");  // there was a backslash before
      rows.push_back({title, line, ""});
    }
  }
  EXPECT_FALSE(rows.empty()) << path << ": no table";
  EXPECT_EQ(without_message, rows.size()) << path << ": the last text has no message";
  return rows;
}

}  // namespace lockstep::test
