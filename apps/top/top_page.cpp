// apps/top/top_page.cpp -- head, tables and foot.
#include "apps/top/top_page.hpp"

#include "apps/remote/status_text.hpp"
#include "runtime/core/text/shown.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace shoal::apps {
namespace {

constexpr std::array<const char*, top_views> view_names{
  "all", "links", "traffic", "training", "models"};

/// Pieces side by side, on as many lines as they need.
std::vector<text_line>
flowed(const std::vector<span_of_text>& pieces, int columns) {
  constexpr int gap = 2;
  std::vector<text_line> out;
  int used = 0;
  for (const span_of_text& p : pieces) {
    const int width = columns_of(p.text);
    if (out.empty() || used + gap + width > columns) {
      out.push_back({{cut(p.text, columns), p.is}});
      used = width;
      continue;
    }
    out.back().push_back({std::string(gap, ' ')});
    out.back().push_back(p);
    used += gap + width;
  }
  return out;
}

std::vector<text_line> help_lines(int columns) {
  std::vector<text_line> out;
  for (const char* line : {"Keys",
                           "  q, Ctrl-C     end",
                           "  arrows, j, k  scroll by a line",
                           "  PgUp, PgDn    scroll by a page; Home, End",
                           "  Tab, 1 to 5   views",
                           "  s             sort by the next column",
                           "  p             pause",
                           "  ?             this help",
                           "",
                           "Columns",
                           "  CPU     of the cores that compute there",
                           "  MEMORY  of its process",
                           "  DISK    its store of files",
                           "  IN, OUT tensors and weights",
                           "  RTT     from the node that is asked",
                           "  TOK/S   generated for its clients",
                           "  ROLE    job, layers, replica, stage",
                           "  -       not known: the peer does",
                           "          not answer, or not yet",
                           "  *       the node that is asked"})
    out.push_back(cut_line(
      {{line, line[0] == ' ' || line[0] == 0 ? tone::plain : tone::title}},
      columns));
  return out;
}

std::vector<table> tables_of(const top_status& s, top_view view) {
  switch (view) {
  case top_view::links:
    return {links_of(s)};
  case top_view::traffic:
    return {traffic_of(s)};
  case top_view::training:
    return {training_of(s)};
  case top_view::models:
    return {models_of(s)};
  default:
    return {peers_of(s), training_of(s), models_of(s)};
  }
}

std::vector<text_line>
head_of(const top_state& state, const top_choice& choice, int columns) {
  std::vector<span_of_text> first;
  if (state.status != nullptr) {
    const status_json& s = *state.status;
    first.push_back(
      {"shoal " + core::shown(text_of(s, "id")).substr(0, 8), tone::title});
    first.push_back({"node " + core::shown(text_of(s, "name"))});
    first.push_back(
      {core::shown(text_of(s, "state")),
       text_of(s, "state") == "member" ? tone::good : tone::warning});
  }
  if (choice.paused)
    first.push_back({"PAUSED", tone::warning});
  std::vector<text_line> out;
  if (!first.empty())
    out = flowed(first, columns);
  const auto say = [&](const std::string& text, tone is) {
    out.push_back(cut_line({{text, is}}, columns));
  };
  if (!state.lost.empty())
    say("LOST, trying again: " + core::shown(state.lost), tone::bad);
  if (state.status == nullptr)
    return out;
  if (const std::string why = no_quorum_text(*state.status); !why.empty())
    say(core::shown(why), tone::bad);
  for (text_line& line : flowed(
         totals_of({*state.status, *state.memory, state.unix_ms}), columns))
    out.push_back(std::move(line));
  std::vector<span_of_text> views;
  for (int v = 0; v < top_views; ++v) {
    const bool chosen = v == int(choice.view);
    const std::string name =
      std::to_string(v + 1) + " " + view_names[std::size_t(v)];
    views.push_back(
      {chosen ? "[" + name + "]" : name, chosen ? tone::chosen : tone::plain});
  }
  for (text_line& line : flowed(views, columns))
    out.push_back(std::move(line));
  return out;
}

/// The next column to sort by; after the last one none.
void sort_by_next(top_choice& choice) {
  choice.sorted = choice.sorted ? *choice.sorted + 1 : 0;
  choice.scrolled = 0;
}

void choose(top_choice& choice, int view) {
  choice.view = top_view((view + top_views) % top_views);
  choice.sorted.reset();
  choice.scrolled = 0;
  choice.help = false;
}

} // namespace

void press(top_key key, top_choice& choice, int lines) {
  // Bounded, so that pressing it often is undone by as few keys.
  static constexpr int far = 1 << 20;
  const int page = std::max(lines - 1, 1);
  const auto scroll = [&choice](int by) {
    choice.scrolled = std::clamp(choice.scrolled + by, 0, far);
  };
  switch (key) {
  case top_key::none:
    break;
  case top_key::quit:
    choice.over = true;
    break;
  case top_key::up:
    scroll(-1);
    break;
  case top_key::down:
    scroll(1);
    break;
  case top_key::page_up:
    scroll(-page);
    break;
  case top_key::page_down:
    scroll(page);
    break;
  case top_key::first:
    choice.scrolled = 0;
    break;
  case top_key::last:
    choice.scrolled = far;
    break;
  case top_key::next_view:
    choose(choice, int(choice.view) + 1);
    break;
  case top_key::previous_view:
    choose(choice, int(choice.view) - 1);
    break;
  case top_key::view_1:
  case top_key::view_2:
  case top_key::view_3:
  case top_key::view_4:
  case top_key::view_5:
    choose(choice, int(key) - int(top_key::view_1));
    break;
  case top_key::sort:
    sort_by_next(choice);
    break;
  case top_key::help:
    choice.help = !choice.help;
    choice.scrolled = 0;
    break;
  case top_key::pause:
    choice.paused = !choice.paused;
    break;
  }
}

top_page
page_of(const top_state& state, top_choice& choice, int columns, int rows) {
  top_page out;
  columns = std::max(columns, 1);
  rows = std::max(rows, 1);
  out.lines = head_of(state, choice, columns);
  std::vector<text_line> body;
  std::string sorted = "as listed";
  if (choice.help) {
    body = help_lines(columns);
  } else if (state.status != nullptr) {
    auto tables =
      tables_of({*state.status, *state.memory, state.unix_ms}, choice.view);
    if (choice.sorted && *choice.sorted >= tables.front().columns.size())
      choice.sorted.reset();
    if (choice.sorted) {
      sort_rows(tables.front(), *choice.sorted);
      sorted = tables.front().columns[*choice.sorted].title;
    }
    for (const table& t : tables) {
      if (!body.empty())
        body.push_back({});
      std::ranges::move(
        lines_of(t, columns,
                 &t == tables.data() ? choice.sorted : std::nullopt),
        std::back_inserter(body));
    }
  }
  // At least a line of the tables and the foot, however small the window is.
  if (int(out.lines.size()) > rows - 2)
    out.lines.resize(std::size_t(std::max(rows - 2, 0)));
  out.table_rows = std::max(rows - int(out.lines.size()) - 1, 0);
  choice.scrolled = std::clamp(choice.scrolled, 0,
                               std::max(int(body.size()) - out.table_rows, 0));
  for (int i = 0; i < out.table_rows; ++i) {
    const auto at = std::size_t(choice.scrolled) + std::size_t(i);
    out.lines.push_back(at < body.size() ? std::move(body[at]) : text_line{});
  }
  std::vector<span_of_text> keys{{"q end"},
                                 {"? help"},
                                 {"Tab view"},
                                 {"s sort: " + sorted},
                                 {choice.paused ? "p go on" : "p pause"}};
  const int below = int(body.size()) - choice.scrolled - out.table_rows;
  if (below > 0)
    keys.insert(keys.begin(), {std::to_string(below) + " more below"});
  out.lines.push_back(flowed(keys, columns).front());
  if (int(out.lines.size()) > rows)
    out.lines.resize(std::size_t(rows));
  return out;
}

} // namespace shoal::apps
