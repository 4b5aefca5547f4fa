// apps/chat/line_reader.cpp -- libedit, which asks for a character at a time.
#include "apps/chat/line_reader.hpp"

#include "apps/chat/conversation.hpp" // chat_limits

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <string_view>
#include <utility>

namespace shoal::apps {

namespace fs = std::filesystem;
namespace posix = runtime::posix;

namespace {

/// libedit takes characters of the locale; questions are UTF-8.
void use_utf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr
      || std::string_view(::nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

constexpr wchar_t replacement = 0xfffd;

/// The first byte of a character: how many follow, and its own bits.
std::pair<int, wchar_t> lead(unsigned char byte) {
  if (byte < 0x80)
    return {0, byte};
  if (byte >= 0xc2 && byte < 0xe0)
    return {1, byte & 0x1f};
  if (byte >= 0xe0 && byte < 0xf0)
    return {2, byte & 0x0f};
  if (byte >= 0xf0 && byte < 0xf5)
    return {3, byte & 0x07};
  return {0, replacement};
}

} // namespace

struct line_reader::state {
  explicit state(chat_interrupts& i) : interrupts(i) {}

  static char* show_prompt(EditLine* el) { return of(el)->prompt.data(); }
  static int next_char(EditLine* el, wchar_t* out) {
    return of(el)->read_char(el, *out);
  }
  static state* of(EditLine* el) {
    void* data = nullptr;
    ::el_get(el, EL_CLIENTDATA, &data);
    return static_cast<state*>(data);
  }

  /// A byte of stdin. @returns 1; 0 at its end; -1 if a signal has come
  int read_byte(unsigned char& out) {
    for (;;) {
      std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0},
                                pollfd{interrupts.fd(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
        return 0;
      if (fds[1].revents != 0)
        return -1;
      if (fds[0].revents == 0)
        continue;
      const auto got = ::read(STDIN_FILENO, &out, 1);
      if (got < 0 && (errno == EINTR || errno == EAGAIN))
        continue;
      return got > 0 ? 1 : 0;
    }
  }

  int read_char(EditLine* el, wchar_t& out) {
    unsigned char byte = 0;
    int got = read_byte(byte);
    if (got > 0) {
      auto [more, bits] = lead(byte);
      for (; more > 0 && (got = read_byte(byte)) > 0; --more)
        bits =
          (byte & 0xc0) == 0x80 ? (bits << 6) | (byte & 0x3f) : replacement;
      out = bits;
    }
    if (got < 0) {
      const LineInfo* const typed = ::el_line(el);
      interrupted = true;
      empty = typed->lastchar == typed->buffer;
    }
    return got;
  }

  void load_history() const {
    std::error_code error;
    if (fs::is_regular_file(fs::symlink_status(file, error))
        && fs::file_size(file, error) <= chat_limits::history_bytes_max) {
      HistEvent event{};
      ::history(past, &event, H_LOAD, file.c_str());
    }
  }

  void save_history() const {
    std::error_code error;
    auto fd = posix::open_regular(
      file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, error);
    if (!fd)
      return;
    std::FILE* const out = ::fdopen(fd.get(), "w");
    if (out == nullptr)
      return;
    static_cast<void>(fd.release()); // it is closed with `out`
    HistEvent event{};
    ::history(past, &event, H_SAVE_FP, out); // and makes it 0600
    std::fclose(out);
  }

  chat_interrupts& interrupts;
  fs::path file;
  History* past = nullptr;
  EditLine* el = nullptr;
  std::string prompt;
  bool interrupted = false;
  bool empty = false;
};

line_reader::line_reader(fs::path history, chat_interrupts& interrupts)
  : state_(std::make_unique<state>(interrupts)) {
  use_utf8();
  state_->file = std::move(history);
  state_->past = ::history_init();
  HistEvent event{};
  ::history(state_->past, &event, H_SETSIZE, chat_limits::history_lines_max);
  ::history(state_->past, &event, H_SETUNIQUE, 1);
  state_->load_history();
  state_->el = ::el_init("shoal", stdin, stdout, stderr);
  ::el_set(state_->el, EL_CLIENTDATA, state_.get());
  ::el_set(state_->el, EL_PROMPT, &state::show_prompt);
  ::el_set(state_->el, EL_EDITOR, "emacs");
  ::el_set(state_->el, EL_HIST, ::history, state_->past);
  ::el_set(state_->el, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  ::el_source(state_->el, nullptr); // ~/.editrc
  ::el_wset(state_->el, EL_GETCFN, &state::next_char);
}

line_reader::~line_reader() {
  ::el_end(state_->el);
  ::history_end(state_->past);
}

line_reader::got
line_reader::read(const std::string& prompt, std::string& line) {
  state_->prompt = prompt;
  state_->interrupted = false;
  ::el_resize(state_->el);
  // Before the prompt is there, so that nothing is echoed twice.
  ::el_set(state_->el, EL_PREP_TERM, 1);
  int count = 0;
  const char* const text = ::el_gets(state_->el, &count);
  if (state_->interrupted) {
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    state_->interrupts.taken();
    if (state_->interrupts.ends())
      return got::end;
    return state_->empty ? got::interrupted_empty : got::interrupted;
  }
  if (text == nullptr || count <= 0)
    return got::end;
  line.assign(text, std::size_t(count));
  if (line.ends_with('\n'))
    line.pop_back();
  return got::line;
}

void line_reader::remember(const std::string& question) {
  HistEvent event{};
  ::history(state_->past, &event, H_ENTER, question.c_str());
  state_->save_history();
}

} // namespace shoal::apps
