// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a message says, and what a call says that fails.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockstep {

/// Whether `text` contains every part; if not, the failure names the first that is missing.
inline ::testing::AssertionResult contains(std::string_view text,
                                           std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string_view::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
  }
  return ::testing::AssertionSuccess();
}

/// Expects one line that contains every part.
inline void expect_one_line_with(std::string_view text, std::initializer_list<std::string_view> parts) {
  EXPECT_EQ(text.find('\n'), std::string_view::npos) << text;
  EXPECT_TRUE(contains(text, parts));
}

/// The message of the E that `call` throws, which is one line. The test fails if it throws none, or another error.
template <typename E, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const E& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another type: " << error.what();
  }
  return "";
}

/// Expects that `call` throws an E whose message is one line and contains every part.
template <typename E, typename Call>
void expect_error(const Call& call, std::initializer_list<std::string_view> parts) {
  EXPECT_TRUE(contains(message_of<E>(call), parts));
}

}  // namespace lockstep
