// apps/chat/cmd_chat.cpp -- chat: questions from a terminal or a pipe, answers
// to stdout.
//
//   a terminal: line -> /word, or question -> answer, and again
//   a pipe: all of stdin is one question -> answer
//
// The first Ctrl-C stops an answer, by closing its request. At an empty prompt
// it says how to end, and the next one ends.
#include "apps/chat/chat_answer.hpp"
#include "apps/chat/chat_interrupts.hpp"
#include "apps/chat/chat_model.hpp"
#include "apps/chat/chat_options.hpp"
#include "apps/chat/chat_screen.hpp"
#include "apps/chat/chat_words.hpp"
#include "apps/chat/conversation.hpp"
#include "apps/chat/line_reader.hpp"
#include "apps/common/report.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/home_folder.hpp"
#include "runtime/identity/identity.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

namespace shoal::apps {
namespace {

constexpr int http_ok = 200;
constexpr std::string_view block = "\"\"\"";

/// "~/" as a shell has it.
std::filesystem::path path_of(const std::string& text) {
  const std::filesystem::path home = runtime::home_folder();
  return text.starts_with("~/") && !home.empty() ? home / text.substr(2)
                                                 : std::filesystem::path(text);
}

class chat {
public:
  explicit chat(const chat_options& o)
    : o_(o), screen_(o.json),
      model_(o, interrupts_,
             [this](const std::string& t, bool is_long) {
               screen_.progress(t, is_long);
             }),
      talk_(o.settings) {}

  int run() {
    const int code = talk();
    return model_.end() ? code : exit_interrupted;
  }

private:
  enum class asked { answered, stopped, failed };

  int talk() {
    if (auto found = model_.find(); !found)
      return model_.interrupted() || interrupts_.taken()
               ? exit_interrupted
               : fail(found.message());
    if (o_.json || !screen_.is_terminal() || isatty(STDIN_FILENO) != 1)
      return run_once();
    return run_terminal();
  }

  /// Sends the conversation, whose last message is a question, and shows the
  /// answer. Without any answer the question is taken back.
  asked ask() {
    chat_answer answer(chat_answer::clock::now());
    const auto reply = model_.client().stream(
      "/chat/completions", talk_.request(model_.name()),
      [&](std::string_view data) {
        return answer.put(data, chat_answer::clock::now(),
                          [&](const std::string& text, bool thought) {
                            screen_.piece(text, thought);
                          })
               && screen_.open();
      });
    if (reply && (!answer.text().empty() || reply->status == http_ok))
      screen_.end(answer, model_.name());
    if (answer.text().empty())
      unanswered_ = talk_.take_back();
    else {
      talk_.answer(answer.text());
      unanswered_.clear();
    }
    count(answer);
    if (!reply)
      return trouble("cannot ask " + model_.url() + ": " + reply.message());
    if (interrupts_.taken()) {
      screen_.note("[stopped]");
      return asked::stopped;
    }
    if (reply->status != http_ok)
      return trouble(model_.refusal(*reply, words_));
    if (!answer.error().empty())
      return trouble("the answer ended with an error: " + answer.error());
    if (!answer.complete() && answer.finish().empty() && screen_.open())
      return trouble(std::string("the answer broke off")
                     + (words_ ? ": /retry asks again" : ""));
    say_why_it_ended(answer);
    return asked::answered;
  }

  asked trouble(const std::string& text) {
    screen_.trouble(text);
    return asked::failed;
  }

  void say_why_it_ended(const chat_answer& a) {
    if (a.finish() != "length")
      return;
    const auto used = a.prompt_tokens() + a.tokens();
    if (model_.context() > 0 && used >= model_.context())
      screen_.trouble("the model's context is full ("
                      + core::count_text(model_.context(), "token")
                      + (words_ ? "): /clear begins a new conversation" : ")"));
    else
      screen_.note(std::string("[cut: it may be no longer; ")
                   + (words_ ? "/set max_tokens N" : "--max-tokens")
                   + " changes that]");
  }

  void count(const chat_answer& a) {
    if (a.tokens() == 0)
      return;
    ++answers_;
    tokens_ += a.tokens();
    // One that was stopped has no count of its conversation.
    context_used_ =
      (a.prompt_tokens() > 0 ? a.prompt_tokens() : context_used_) + a.tokens();
    context_known_ = a.prompt_tokens() > 0;
    last_speed_ = speed_text(a);
  }

  // A pipe.

  int run_once() {
    std::string question;
    if (const int wrong = read_question(question); wrong != exit_done)
      return wrong;
    talk_.ask(std::move(question));
    switch (ask()) {
    case asked::answered:
      break;
    case asked::stopped:
      return exit_interrupted;
    case asked::failed:
      return exit_failed;
    }
    return exit_done;
  }

  /// All of stdin, without the line ends at its end.
  int read_question(std::string& out) {
    std::array<char, 16 << 10> bytes{};
    for (;;) {
      std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0},
                                pollfd{interrupts_.fd(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
        break;
      if (fds[1].revents != 0)
        return exit_interrupted;
      if (fds[0].revents == 0)
        continue;
      const auto got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN))
        continue;
      if (got < 0)
        return fail("cannot read the question from stdin: "
                    + runtime::posix::last_error().message());
      if (got == 0)
        break;
      out.append(bytes.data(), std::size_t(got));
      if (out.size() > chat_limits::question_bytes_max)
        return fail("the question on stdin is longer than "
                    + core::size_text(chat_limits::question_bytes_max));
    }
    while (out.ends_with('\n') || out.ends_with('\r'))
      out.pop_back();
    if (out.empty())
      return fail("there is no question on stdin: echo QUESTION | shoal chat",
                  exit_usage);
    if (!core::is_utf8(out))
      return fail("the question on stdin is not UTF-8 text");
    return exit_done;
  }

  // A terminal.

  int run_terminal() {
    words_ = true;
    std::filesystem::path history = data_dir_of(o_.at);
    try {
      runtime::mend_data_dir(history);
      runtime::make_private_dir(history);
    } catch (const std::exception& e) {
      screen_.note(std::string("no history: ") + e.what());
    }
    line_reader lines(history / "chat_history", interrupts_);
    screen_.note("\"" + model_.name() + "\" at " + model_.url()
                 + "; /help lists what there is, Ctrl-D ends");
    bool again = false; // Ctrl-C ends
    for (;;) {
      std::string text;
      bool in_block = false; // then it is a question, whatever it begins with
      switch (read_lines(lines, text, in_block)) {
      case line_reader::got::end:
        return interrupts_.ends() ? exit_interrupted : exit_done;
      case line_reader::got::interrupted_empty:
        if (std::exchange(again, true))
          return exit_done;
        screen_.note("Ctrl-C again, or Ctrl-D, ends");
        continue;
      case line_reader::got::interrupted:
        again = false;
        continue;
      case line_reader::got::line:
        again = false;
      }
      if (text.find_first_not_of(" \t\n") == std::string::npos)
        continue;
      lines.remember(text);
      if (!take(in_block ? chat_line{chat_word::none, text}
                         : read_chat_line(text)))
        return exit_done;
      if (interrupts_.ends())
        return exit_interrupted;
    }
  }

  /// A line, or several: after a backslash, or between """ and """.
  line_reader::got
  read_lines(line_reader& lines, std::string& text, bool& in_block) {
    std::string line;
    auto got = lines.read(">>> ", line);
    if (got != line_reader::got::line)
      return got;
    in_block = line.starts_with(block);
    if (in_block)
      line.erase(0, block.size());
    for (;;) {
      const bool more =
        in_block ? !line.ends_with(block) : line.ends_with('\\');
      if (in_block && !more)
        line.resize(line.size() - block.size());
      if (!in_block && more)
        line.pop_back();
      text += line;
      if (!more)
        return got;
      text += '\n';
      if (text.size() > chat_limits::question_bytes_max) {
        screen_.trouble("the question is longer than "
                        + core::size_text(chat_limits::question_bytes_max));
        return line_reader::got::interrupted;
      }
      got = lines.read("... ", line);
      if (got == line_reader::got::interrupted_empty)
        got = line_reader::got::interrupted;
      if (got != line_reader::got::line)
        return got;
    }
  }

  /// @returns whether the chat goes on
  bool take(const chat_line& line) {
    switch (line.word) {
    case chat_word::none:
      talk_.ask(line.rest);
      ask();
      break;
    case chat_word::help:
      screen_.note(chat_help());
      break;
    case chat_word::system:
      talk_.set_system(line.rest);
      screen_.note(line.rest.empty() ? "the model is told nothing first"
                                     : "the model is told this first");
      break;
    case chat_word::clear:
      clear();
      break;
    case chat_word::retry:
      retry();
      break;
    case chat_word::save:
      file_work(line.rest, "saved to ",
                [&](const auto& f) { return talk_.save(f, model_.name()); });
      break;
    case chat_word::load:
      file_work(line.rest, "loaded from ", [&](const auto& f) {
        auto read = talk_.load(f);
        if (read)
          unanswered_.clear(); // a question of another conversation
        return read;
      });
      break;
    case chat_word::set:
      set(line.rest);
      break;
    case chat_word::stats:
      show_stats();
      break;
    case chat_word::unknown:
      screen_.trouble(line.rest);
      break;
    case chat_word::exit:
      return false;
    }
    return true;
  }

  void clear() {
    if (unanswered_.empty())
      unanswered_ = talk_.take_back();
    talk_.clear();
    context_used_ = 0;
    context_known_ = true;
    screen_.note(talk_.settings().system.empty()
                   ? "the conversation is forgotten"
                   : "the conversation is forgotten; the /system text stays");
  }

  void retry() {
    std::string question = std::exchange(unanswered_, {});
    if (question.empty())
      question = talk_.take_back();
    if (question.empty()) {
      screen_.trouble("there is no question to ask again");
      return;
    }
    screen_.note(question);
    talk_.ask(std::move(question));
    ask();
  }

  template <class Work>
  void file_work(const std::string& file, const char* done, Work work) {
    if (file.empty()) {
      screen_.trouble("name a file: /save FILE, /load FILE");
      return;
    }
    if (const auto worked = work(path_of(file)); !worked)
      screen_.trouble(worked.message());
    else
      screen_.note(done + file + ": "
                   + core::count_text(talk_.messages().size(), "message"));
  }

  void set(const std::string& words) {
    const auto space = std::min(words.find_first_of(" \t"), words.size());
    const auto value = words.find_first_not_of(" \t", space);
    if (!words.empty())
      if (const auto done = talk_.set(
            words.substr(0, space),
            value == std::string::npos ? std::string() : words.substr(value));
          !done) {
        screen_.trouble(done.message());
        return;
      }
    screen_.note(talk_.settings_text());
  }

  void show_stats() {
    std::string text = core::count_text(answers_, "answer") + ", "
                       + core::count_text(tokens_, "token");
    if (!last_speed_.empty())
      text += "; the last one: " + last_speed_;
    text += "\nthe conversation has "
            + core::count_text(talk_.messages().size(), "message") + ", "
            + (context_known_ ? "" : "at least ")
            + core::count_text(context_used_, "token");
    if (model_.context() > 0)
      text += " of " + std::to_string(model_.context());
    screen_.note(text);
  }

  const chat_options& o_;
  chat_interrupts interrupts_;
  chat_screen screen_;
  chat_model model_;
  conversation talk_;
  bool words_ = false;     ///< the user can type /words
  std::string unanswered_; ///< the last question, if it was taken back
  std::string last_speed_;
  std::uint64_t answers_ = 0, tokens_ = 0, context_used_ = 0;
  bool context_known_ = true; ///< else more of it is used than that
};

} // namespace

int run_chat(const chat_options& o) {
  chat c(o);
  return c.run();
}

} // namespace shoal::apps
