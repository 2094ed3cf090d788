// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document as curves of characters, and as a page.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/reports/plot.hpp"
#include "trainer/reports/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string number_text(const Json& value, bool is_share) {
  if (!value.is_number()) return "-";
  return is_share ? percent_text(value.get<double>()) + " %" : fmt::format("{:.4g}", value.get<double>());
}

/// "75.00 %"; "validation 75.00 %", where it is not of the set that the other numbers are of.
std::string best_text(const Json& best) {
  if (best.is_null()) return "-";
  return (best.value("of", "test") == "validation" ? "validation " : "") +
         number_text(best["accuracy"], true);
}

// Curves of characters: of one run in dots of braille, of several as a character each.

char mark_of(std::size_t run) {
  return "123456789abcdefghijklmnopqrstuvwxyz"[run % 35];
}

std::string drawn(const Json& runs, const char* title, const char* what, double scale,
                  const PlotStyle& style) {
  std::vector<PlotCurve> curves;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string half :
         {"train", "validation", "test", "ema_validation", "ema_test", "swa_validation", "swa_test"}) {
      auto points = points_of(runs[i], "epoch", half + what, scale);
      if (points.empty() && half + what == "train_loss")  // a run within its first epoch has steps alone
        points = points_of(runs[i], "step", "loss", scale);
      const char mark = runs.size() > 1 ? mark_of(i) : half == "train" ? '.' : '*';
      curves.push_back({mark, std::move(points)});
    }
  }
  const std::string picture = plot(std::move(curves), style);
  return picture.empty() ? "" : fmt::format("\n{}, by step:\n{}", title, picture);
}

}  // namespace

std::string report_in_characters(const Json& report, int columns, bool unicode) {
  constexpr int kWidest = 100;
  const Json& runs = report["runs"];
  const bool several = runs.size() > 1;
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& run = runs[i];
    const std::string line = fmt::format(
        "{}{}: {}, step {}, accuracy {}, best {}, test loss {}",
        several ? fmt::format("{}  ", mark_of(i)) : "", printable_line(run["name"].get<std::string>()),
        run["state"].get<std::string>(), run["steps"].dump(), number_text(run["accuracy"], true),
        best_text(run["best"]), number_text(run["test_loss"], false));
    text += fold(line, columns) + "\n";
  }
  const PlotStyle style{.columns = std::min(columns, kWidest), .unicode = unicode && !several};
  return text + drawn(runs, "loss", "_loss", 1, style) + drawn(runs, "accuracy, %", "_accuracy", 100, style);
}

// The page: style, scripts and the document are put into page/page.html. Nothing in the document becomes markup: it is
// JSON in ASCII, and the scripts make text nodes of it.

// Text that CMake made from trainer/reports/page. NOLINTNEXTLINE(readability-redundant-declaration): in one piece with it
extern const std::string_view kPageTemplate, kPageStyle, kPageScript;

namespace {

/// No byte of it ends a script element or begins another one, whatever the names in it are.
std::string json_in_html(const Json& json) {
  std::string text;
  for (const char c : json_text_in_ascii(json)) {
    const bool is_markup = c == '<' || c == '>' || c == '&';
    text += is_markup ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return text;
}

/// Whole numbers that a script's doubles do not hold, such as a large seed, become texts.
void keep_digits(Json& json) {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  if (json.is_structured())
    for (Json& part : json) keep_digits(part);
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > kExact) json = json.dump();
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

std::string report_page(const Json& report) {
  std::string_view rest = kPageTemplate;
  std::string page;
  Json data = report;
  keep_digits(data);
  pass(rest, "/*STYLE*/", kPageStyle, page);
  pass(rest, "<!--STATIC-->", page_without_scripts(report), page);
  pass(rest, "/*CHARTS*/", json_in_html(charts_json()), page);
  pass(rest, "/*DATA*/", json_in_html(data), page);
  pass(rest, "/*SCRIPT*/", kPageScript, page);
  return page += rest;
}

}  // namespace lockstep
