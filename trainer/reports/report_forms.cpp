// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A report as a page, and as TensorBoard's event files.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "data/pictures/picture.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/reports/report.hpp"
#include "trainer/reports/runs.hpp"
#include "trainer/run/event_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

void add_png(EventFile& file, const std::string& tag, std::int64_t step, const Picture& picture) {
  const auto png = write_png(picture);
  file.add_picture(tag, step, picture.width, picture.height,
                   {reinterpret_cast<const char*>(png.data()), png.size()});
}

// The confusion matrix, a cell with its count in digits for each label (down) and answer (across).

class MatrixPicture {
 public:
  using Colour = std::array<std::uint8_t, 3>;

  MatrixPicture(int width, int height) {
    picture_.width = width, picture_.height = height, picture_.channels = 3;
    picture_.pixels.assign(3 * picture_.plane_size(), 255);
  }

  void fill(int left, int top, int width, int height, const Colour& colour) {
    for (int y = std::max(top, 0); y < std::min(top + height, picture_.height); ++y)
      for (int x = std::max(left, 0); x < std::min(left + width, picture_.width); ++x) set(x, y, colour);
  }

  /// Digits of 3 x 5 dots, a bit each, from the top left on.
  void number(const std::string& digits, int left, int top, int dot, const Colour& colour) {
    constexpr std::array<unsigned, 10> kDots = {075557, 026227, 071747, 071717, 055711,
                                                074717, 074757, 071111, 075757, 075717};
    for (const char digit : digits) {
      for (int bit = 0; bit < 15; ++bit) {
        if ((kDots.at(static_cast<std::size_t>(digit - '0')) >> (14 - bit) & 1U) != 0)
          fill(left + bit % 3 * dot, top + bit / 3 * dot, dot, dot, colour);
      }
      left += 4 * dot;
    }
  }

  const Picture& picture() const { return picture_; }

 private:
  void set(int x, int y, const Colour& colour) {
    const auto at =
        static_cast<std::size_t>(y) * static_cast<std::size_t>(picture_.width) + static_cast<std::size_t>(x);
    for (std::size_t c = 0; c < 3; ++c) picture_.pixels[c * picture_.plane_size() + at] = colour[c];
  }

  Picture picture_;
};

/// White is none of the label's samples, blue all of them; orange where the answer is wrong.
MatrixPicture::Colour cell_colour(double share, bool right) {
  const double depth = std::pow(share, 0.4);
  const auto towards = [&](double full) {
    return static_cast<std::uint8_t>(std::lround(255 - depth * (255 - full)));
  };
  return right ? MatrixPicture::Colour{towards(37), towards(99), towards(235)}
               : MatrixPicture::Colour{towards(217), towards(72), towards(15)};
}

Picture confusion_picture(const Json& rows) {
  constexpr int kCell = 44, kDot = 2, kGap = 1;
  const auto classes = static_cast<int>(rows.size());
  MatrixPicture canvas(classes * kCell, classes * kCell);
  for (int label = 0; label < classes; ++label) {
    const Json& row = rows[static_cast<std::size_t>(label)];
    double all = 0;
    for (const Json& count : row) all += count.get<double>();
    for (int answer = 0; answer < classes; ++answer) {
      const auto count = row[static_cast<std::size_t>(answer)].get<std::int64_t>();
      const double share = all > 0 ? static_cast<double>(count) / all : 0;
      const int left = answer * kCell, top = label * kCell;
      canvas.fill(left, top, kCell - kGap, kCell - kGap, cell_colour(share, label == answer));
      const std::string digits = std::to_string(count);
      const int width = 4 * kDot * static_cast<int>(digits.size()) - kDot;
      const MatrixPicture::Colour ink =
          share > 0.3 ? MatrixPicture::Colour{255, 255, 255} : MatrixPicture::Colour{60, 60, 60};
      if (count > 0 && width < kCell)
        canvas.number(digits, left + (kCell - width) / 2, top + (kCell - 5 * kDot) / 2, kDot, ink);
    }
  }
  return canvas.picture();
}

/// The bytes of "data:image/png;base64,...", as report_model.cpp writes them.
std::string bytes_of_uri(std::string_view uri) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : uri.substr(uri.find(',') + 1)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

void add_pictures(EventFile& file, const Json& run) {
  constexpr std::size_t kMostClasses = 40;
  if (!run.contains("classes")) return;
  const auto step = run["steps"].get<std::int64_t>();
  const Json& found = run["classes"];
  const std::size_t classes = found["classes"].size();
  if (classes <= kMostClasses)
    add_png(file, "classes/confusion matrix (labels down, answers across)", step,
            confusion_picture(found["confusion"]));
  const auto name = [&](const Json& number) {
    return found["classes"][number.get<std::size_t>()]["name"].get<std::string>();
  };
  int place = 0;
  for (const Json& one : found["mistakes"]) {
    if (!one["picture"].is_string()) continue;
    const std::string png = bytes_of_uri(one["picture"].get_ref<const std::string&>());
    const auto size_at = [&](std::size_t at) {  // of its header: most significant byte first
      int size = 0;
      for (std::size_t i = at; i < at + 4; ++i) size = size << 8 | static_cast<unsigned char>(png.at(i));
      return size;
    };
    file.add_picture(fmt::format("mistakes/{:02} sample {}: {} taken for {}", ++place, one["sample"].dump(),
                                 name(one["label"]), name(one["answer"])),
                     step, size_at(16), size_at(20), png);
  }
}

/// "[64, 10]" and the like as numbers; the batch is not known.
std::vector<std::int64_t> shape_of_text(const std::string& text) {
  std::vector<std::int64_t> shape = {-1};
  std::int64_t number = -1;
  for (const char c : text + " ") {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
    } else if (number >= 0) {
      shape.push_back(std::exchange(number, -1));
    }
  }
  return shape;
}

std::vector<GraphNode> graph_of_layers(const Json& layers) {
  std::vector<GraphNode> nodes;
  for (const Json& layer : layers) {
    GraphNode node{
        .name = layer["name"], .operation = layer["kind"], .output = shape_of_text(layer["output"])};
    for (const Json& from : layer["from"]) node.inputs.push_back(nodes.at(from.get<std::size_t>()).name);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// What a run computes, without where it lies.
std::map<std::string, std::string> keys_of(const std::string& yaml) {
  auto keys = flat_job(yaml, "job.yaml");
  std::erase_if(keys, [](const auto& key) {
    return key.first.starts_with("run.") || key.first.starts_with("inject.");
  });
  return keys;
}

}  // namespace

void write_event_file(Env& env, const Json& run, const std::string& folder) {
  EventFile file(env, folder);
  file.add_job(keys_of(run["job"].get<std::string>()));
  if (run.contains("model")) file.add_graph(graph_of_layers(run["model"]["layers"]));
  read_metrics(run["directory"].get<std::string>() + "/metrics.jsonl", [&](const MetricsEvent& event) {
    file.add_line(Json::parse(event.line(), nullptr, /*allow_exceptions=*/false));
  });
  add_pictures(file, run);
}

void write_event_pictures(Env& env, const Json& run, const std::string& folder) {
  if (!run.contains("classes")) return;
  EventFile file(env, folder);
  add_pictures(file, run);
}

// The page: style, scripts and the document are put into page/page.html. Nothing in the document becomes markup: it is
// JSON in ASCII, and the scripts make text nodes of it.

// What CMake has made of trainer/reports/page. NOLINTNEXTLINE(readability-redundant-declaration): in one piece with it
extern const std::string_view kPageTemplate, kPageStyle, kPageScript;

namespace {

/// No byte of it ends a script element or begins another one, whatever the names in it are.
std::string json_in_html(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : json_text_in_ascii(json)) {
    switch (c) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += c;
    }
  }
  return text;
}

/// Takes the template up to the marker, and what stands in its place.
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
  pass(rest, "/*DATA*/", json_in_html(report), page);
  pass(rest, "/*SCRIPT*/", kPageScript, page);
  return page += rest;
}

}  // namespace lockstep
