// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What texts and errors say. A failure names the place of the call.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockstep::test {

/// Expects each of these words in the text.
inline void expect_words(std::string_view text, std::initializer_list<std::string_view> words,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  for (const std::string_view each : words)
    if (text.find(each) == text.npos) ADD_FAILURE_AT(file, line) << "'" << each << "' is not in:\n" << text;
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

/// Expects that `call` throws an Expected, whose message is one line with each of these words.
template <typename Expected, typename Call>
void expect_error(Call call, std::initializer_list<std::string_view> words,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  try {
    call();
    ADD_FAILURE_AT(file, line) << "nothing was thrown";
  } catch (const Expected& error) {
    const std::string message = error.what();
    if (message.find('\n') != message.npos) ADD_FAILURE_AT(file, line) << "not one line: " << message;
    expect_words(message, words, file, line);
  } catch (const std::exception& error) {
    ADD_FAILURE_AT(file, line) << "an error of another type: " << error.what();
  }
}

}  // namespace lockstep::test
