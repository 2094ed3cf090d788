// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A report as a page.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "trainer/reports/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace lockstep {

// The page: style, scripts and the document are put into page/page.html. Nothing in the document becomes markup: it is
// JSON in ASCII, and the scripts make text nodes of it.

// Text that CMake made from trainer/reports/page. NOLINTNEXTLINE(readability-redundant-declaration): in one piece with it
extern const std::string_view kPageTemplate, kPageStyle, kPageScript;

namespace {

/// No byte of it ends a script element or begins another one, whatever the names in it are.
std::string json_in_html(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : json_text_in_ascii(json)) {
    const bool is_markup = c == '<' || c == '>' || c == '&';
    text += is_markup ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return text;
}

/// Takes the template up to the marker, and the text in its place.
void pass(std::string_view& rest, std::string_view marker, std::string_view text, std::string& page) {
  const std::size_t at = rest.find(marker);
  LOCKSTEP_CHECK(at != rest.npos);
  page += rest.substr(0, at);
  page += text;
  rest.remove_prefix(at + marker.size());
}

}  // namespace

std::string report_page(const nlohmann::ordered_json& report) {
  std::string_view rest = kPageTemplate;
  std::string page;
  pass(rest, "/*STYLE*/", kPageStyle, page);
  pass(rest, "<!--STATIC-->", page_without_scripts(report), page);
  pass(rest, "/*CHARTS*/", json_in_html(charts_json()), page);
  pass(rest, "/*DATA*/", json_in_html(report), page);
  pass(rest, "/*SCRIPT*/", kPageScript, page);
  return page += rest;
}

}  // namespace lockstep
