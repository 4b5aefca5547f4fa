// apps/chat/chat_model.cpp -- asks nodes and servers for their models.
#include "apps/chat/chat_model.hpp"

#include "apps/chat/chat_answer.hpp"   // error_in
#include "apps/common/named_model.hpp" // hub_repository
#include "apps/manage/served_description.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/signal_order.hpp"
#include "apps/terminal/signals.hpp" // again_text
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using model::failure;

namespace {

constexpr int ok = 200, unauthorized = 401, forbidden = 403, not_found = 404;
/// A server lists a few models; one that lists thousands is asked by name.
constexpr std::size_t models_max = 10000;
/// Of a line of `shoal serve --json`.
constexpr std::size_t line_bytes_max = 1 << 20;
/// An end that takes longer is told of.
constexpr int slow_ms = 2000;

/// Tells the child to end in order, as Ctrl-C would.
void interrupt(const runtime::child_process& child) {
  if (child.running())
    ::kill(child.pid(), SIGINT);
}

} // namespace

chat_model::chat_model(const chat_options& o, chat_interrupts& interrupts,
                       sayer say)
  : o_(o), interrupts_(interrupts), say_(std::move(say)) {
  settings_.wake = interrupts.fd();
}

chat_model::~chat_model() {
  end();
}

bool chat_model::end() {
  if (!child_.running())
    return true;
  signal_order order;
  static_cast<void>(interrupts_.taken());
  order.take(signal_order::clock::now(), false);
  interrupt(child_);
  std::array<char, 4096> bytes{};
  bool said = false;
  for (;;) {
    std::array<pollfd, 2> fds{
      pollfd{said_.get(), POLLIN, 0}, // the child's end closes the pipe
      pollfd{interrupts_.ends() ? -1 : interrupts_.fd(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), said ? -1 : slow_ms);
    if (ready < 0 && errno != EINTR)
      break;
    if (ready == 0) {
      said = true;
      say_("ending the model of this chat"
             + (interrupts_.ends() ? std::string()
                                   : std::string(" (") + again_text + ")"),
           true);
    }
    if (ready > 0 && fds[1].revents != 0 && interrupts_.taken()
        && !interrupts_.ends()
        && order.take(signal_order::clock::now(), false)
             == signal_order::meaning::again) {
      child_.kill();
      say_(left_text(), true);
      return false;
    }
    if (ready > 0 && fds[0].revents != 0
        && ::read(said_.get(), bytes.data(), bytes.size()) <= 0)
      break;
  }
  child_.wait();
  return true;
}

std::string chat_model::left_text() const {
  if (alone_)
    return "stopped";
  return "stopped; the model may still be served: "
         + (name_.empty()
              ? "`" + command_line("jobs", o_.at) + "` shows whether it is"
              : "`" + command_line("cancel " + shell_word(name_), o_.at)
                  + "` ends it");
}

model::status chat_model::read_key() {
  if (o_.key_variable.empty())
    return model::done{};
  const char* const key = std::getenv(o_.key_variable.c_str());
  const std::string name = core::shown(o_.key_variable);
  if (key == nullptr || *key == 0)
    return failure{"the variable " + name
                   + " has no API key: set it, or name another one by "
                     "--api-key-env"};
  if (!runtime::http_client::is_key(key))
    return failure{"the variable " + name
                   + " has a key with spaces or characters beyond ASCII"};
  settings_.key = key;
  return model::done{};
}

model::status chat_model::use_url(const std::string& url) {
  auto base = runtime::parse_http_url(url);
  if (!base)
    return failure{"--url: " + base.message()};
  settings_.base = *std::move(base);
  if (settings_.base.path.empty())
    settings_.base.path = "/v1";
  if (!settings_.base.secure && !o_.ca.empty())
    return failure{"--ca: " + settings_.base.text()
                   + " is asked without TLS; name an https:// address"};
  if (settings_.base.secure) {
    auto trust = runtime::tls_trust::load(o_.ca);
    if (!trust)
      return failure{(o_.ca.empty() ? "" : "--ca: ") + trust.message()};
    settings_.trust = *std::move(trust);
  }
  return model::done{};
}

model::status chat_model::find() {
  if (auto read = read_key(); !read)
    return read;
  if (o_.url.empty())
    return find_at_node();
  if (auto used = use_url(o_.url); !used)
    return used;
  const auto models = list();
  if (!models) {
    // A server need not list its models.
    name_ = o_.model;
    return name_.empty() ? model::status(models.why()) : model::done{};
  }
  return choose(*models);
}

model::status chat_model::find_at_node() {
  std::error_code error;
  const bool is_path = !o_.model.empty()
                       && (std::filesystem::exists(o_.model, error)
                           || !hub_repository(o_.model).empty());
  runtime::client node(client_of(o_.at));
  if (node.connect()) {
    if (is_path && !names_a_node(o_.at))
      return serve(true);
    return failure{
      node.text()
      + "; name a model's folder to serve it here, or another server by "
        "--url (`shoal serve` says its own)"};
  }
  const auto status = status_of(node);
  if (!status)
    return status.why();
  const std::string address = http_address(*status);
  if (address.empty())
    return failure{"the node at " + node.where()
                   + " has no address for clients of models (--http off): ask "
                     "another node by --name, or its address by --url"};
  if (auto used = use_url(address); !used)
    return used;
  const auto models = list();
  if (!models)
    return models.why();
  const auto named = [&](const listed& m) { return m.name == o_.model; };
  if (is_path && std::ranges::none_of(*models, named)) {
    const std::string taken = name_of_files(o_.model);
    if (std::filesystem::exists(o_.model, error)
        && std::ranges::find(*models, taken, &listed::name) != models->end())
      return failure{"a model named \"" + core::shown(taken)
                     + "\" is served at " + url() + ": `shoal chat "
                     + shell_word(taken)
                     + "` asks it. To chat with another of that name, serve "
                       "it as another: `shoal serve "
                     + shell_word(o_.model) + " --as NAME`"};
    return serve(false);
  }
  return choose(*models);
}

model::result<std::vector<chat_model::listed>> chat_model::list() const {
  const auto reply = client().get("/models");
  if (!reply)
    return failure{"cannot ask " + url() + ": " + reply.message()};
  if (reply->stopped)
    return failure{"stopped"};
  if (reply->status != ok)
    return failure{refusal(*reply, false)};
  const auto object = model::parse_json_object<json>(reply->body, url());
  if (!object)
    return object.why();
  std::vector<listed> out;
  const auto data = object->find("data");
  if (data == object->end() || !data->is_array() || data->size() > models_max)
    return failure{url() + " has no list of models: is it OpenAI's API?"};
  for (const json& each : *data) {
    const auto id = each.is_object() ? each.find("id") : each.end();
    if (!each.is_object() || id == each.end() || !id->is_string())
      continue;
    listed m{id->get<std::string>(), 0};
    if (const auto length = each.find("max_model_len");
        length != each.end() && length->is_number_unsigned())
      m.context = length->get<std::uint64_t>();
    out.push_back(std::move(m));
  }
  return out;
}

model::status chat_model::choose(const std::vector<listed>& from) {
  std::vector<std::string> names;
  for (const listed& m : from) {
    names.push_back(core::shown(m.name));
    if (m.name == o_.model || (o_.model.empty() && from.size() == 1)) {
      name_ = m.name;
      context_ = m.context;
      return model::done{};
    }
  }
  const std::string there =
    names.empty() ? "; no model is served there: `shoal serve MODEL` serves one"
                  : "; there are " + core::listed(names);
  if (o_.model.empty())
    return failure{names.empty()
                     ? "no model is served at " + url()
                         + ": `shoal serve MODEL` serves one, and `shoal chat "
                           "FOLDER` serves a folder for a chat"
                     : "several models are served at " + url()
                         + ", name one of them: " + core::listed(names)};
  return failure{
    "no model \"" + core::shown(o_.model) + "\" is served at " + url()
    + (o_.url.empty() ? ", and there is no such folder" : "") + there};
}

model::status chat_model::serve(bool alone) {
  alone_ = alone;
  std::vector<std::string> words{"shoal", "serve", o_.model, "--json"};
  if (alone)
    words.insert(words.end(), {"--http", "127.0.0.1:0"});
  const auto add = [&words](const char* flag, const std::string& value) {
    if (!value.empty())
      words.insert(words.end(), {flag, value});
  };
  add("--name", o_.at.name);
  add("--data-dir", o_.at.data_dir.string());
  add("--cluster-key", o_.at.cluster_key.string());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0)
    return failure{"cannot start `shoal serve`: "
                   + runtime::posix::last_error().message()};
  said_.reset(fds[0]);
  runtime::posix::descriptor theirs(fds[1]);
  const runtime::posix::descriptor nothing(
    ::open("/dev/null", O_RDONLY | O_CLOEXEC));
  child_ = runtime::child_process::fork([&]() noexcept {
    ::setpgid(0, 0); // Ctrl-C is for the chat
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    std::signal(SIGPIPE, SIG_DFL);
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(theirs.get(), STDOUT_FILENO);
    ::execv("/proc/self/exe", arguments.data());
    return int(exit_failed);
  });
  theirs.reset(); // or its end would not be seen
  say_("serving " + core::shown(o_.model) + " for this chat", false);
  return wait_until_served();
}

model::status
chat_model::read_served_line(const std::string& line, bool& ready) {
  const auto event = model::parse_json_object<json>(line, "its line");
  if (!event)
    return model::done{};
  const auto text = [&](const char* key) {
    const auto found = event->find(key);
    return found != event->end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
  };
  if (text("event") != "ready") {
    said_last_ = text("text");
    say_(said_last_, is_long_);
    return model::done{};
  }
  ready = true;
  name_ = text("model");
  if (auto used = use_url(text("url")); !used)
    return used;
  const auto models = list();
  if (!models)
    return models.why();
  for (const listed& m : *models)
    if (m.name == name_)
      context_ = m.context;
  return model::done{};
}

model::status chat_model::wait_until_served() {
  std::string input;
  std::array<char, 4096> bytes{};
  bool ready = false;
  while (!ready) {
    std::array<pollfd, 2> fds{pollfd{said_.get(), POLLIN, 0},
                              pollfd{interrupts_.fd(), POLLIN, 0}};
    const int got_any = ::poll(fds.data(), fds.size(), is_long_ ? -1 : slow_ms);
    if (got_any < 0 && errno != EINTR)
      return failure{"cannot wait for `shoal serve`: "
                     + runtime::posix::last_error().message()};
    if (got_any == 0) {
      is_long_ = true;
      say_("waiting for the model"
             + (said_last_.empty() ? "" : "; it says: " + said_last_),
           true);
    }
    if (got_any <= 0)
      continue;
    if (fds[1].revents != 0) {
      interrupted_ = true;
      return failure{"stopped"};
    }
    if (fds[0].revents == 0)
      continue;
    const auto got = ::read(said_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      const int status = child_.wait();
      return failure{"`shoal serve " + core::shown(o_.model) + "` "
                     + runtime::how_it_ended(status)
                     + "; what it says is above"};
    }
    input.append(bytes.data(), std::size_t(got));
    for (auto end = input.find('\n'); end != input.npos && !ready;
         end = input.find('\n')) {
      if (auto read = read_served_line(input.substr(0, end), ready); !read)
        return read;
      input.erase(0, end + 1);
    }
    if (input.size() > line_bytes_max)
      return failure{"`shoal serve` says a line that is too long"};
  }
  return model::done{};
}

std::string
chat_model::refusal(const runtime::http_reply& reply, bool words) const {
  const server_error error = error_in(reply.body);
  if (reply.status == unauthorized || reply.status == forbidden)
    return url()
           + (settings_.key.empty()
                ? " wants an API key: set a variable to it, and name that by "
                  "--api-key-env"
                : " does not take the API key in the variable "
                    + core::shown(o_.key_variable))
           + (error.text.empty() ? "" : " (it says: " + error.text + ")");
  if (error.asks_too_much)
    return "an answer of max_tokens does not fit the model's context: "
           + std::string(words ? "/set max_tokens with a smaller number, and "
                                 "/retry asks again"
                               : "give a smaller --max-tokens")
           + " (the server says: " + error.text + ")";
  if (error.context_full)
    return (words ? "the conversation does not fit the model's context: "
                    "/clear begins a new one, and /retry asks again there"
                  : "the question does not fit the model's context")
           + (" (the server says: " + error.text + ")");
  if (reply.status == not_found && !name_.empty())
    return "no model \"" + core::shown(name_) + "\" is served at " + url()
           + " any more (it says: " + error.text + ")";
  return url() + " answers " + std::to_string(reply.status) + ": " + error.text;
}

} // namespace shoal::apps
