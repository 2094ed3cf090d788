// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Words that texts and errors must have. A failure names the place of the call.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep {

/// True if `text` contains every part; otherwise the failure names the first that is missing.
inline ::testing::AssertionResult contains(std::string_view text,
                                           std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string_view::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
  }
  return ::testing::AssertionSuccess();
}

/// Expects one line that contains every part.
inline void expect_one_line_with(std::string_view text, std::initializer_list<std::string_view> parts,
                                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (text.find('\n') != text.npos) ADD_FAILURE_AT(file, line) << "not one line: " << text;
  if (const auto result = contains(text, parts); !result) ADD_FAILURE_AT(file, line) << result.message();
}

/// The message of the E that `call` throws, which is one line. The test fails if it throws none, or another error.
template <typename E, typename Call>
std::string message_of(const Call& call, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  try {
    call();
    ADD_FAILURE_AT(file, line) << "nothing was thrown";
  } catch (const E& error) {
    expect_one_line_with(error.what(), {}, file, line);
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE_AT(file, line) << "an error of another type: " << error.what();
  }
  return "";
}

/// Expects that `call` throws an E whose message is one line and contains every part.
template <typename E, typename Call>
void expect_error(const Call& call, std::initializer_list<std::string_view> parts,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  expect_one_line_with(message_of<E>(call, file, line), parts, file, line);
}

namespace test {

using lockstep::expect_error;

/// Expects each of these words in the text.
inline void expect_words(std::string_view text, std::initializer_list<std::string_view> words,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (const auto result = contains(text, words); !result) ADD_FAILURE_AT(file, line) << result.message();
}

inline int count_of(std::string_view words, std::string_view text) {
  int count = 0;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

/// The message of the Expected that `call` throws; empty if it throws nothing.
template <typename Expected, typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

}  // namespace test
}  // namespace lockstep
