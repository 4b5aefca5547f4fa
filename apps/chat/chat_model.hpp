// apps/chat/chat_model.hpp -- finds the model that a chat is with.
//
//   --url: at that server
//   a name that the local node serves: at that node
//   else a folder or file: `shoal serve` serves it, as a child of this process,
//   until the object ends
//
// Threads: one. Errors: failures say what to do.
#pragma once

#include "apps/chat/chat_interrupts.hpp"
#include "apps/chat/chat_options.hpp"
#include "runtime/core/result.hpp"
#include "runtime/host/child_process.hpp"
#include "runtime/http/client/http_client.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::apps {

class chat_model {
public:
  /// Takes a line about what is done, and whether that has taken long already.
  using sayer = std::function<void(const std::string& line, bool is_long)>;

  chat_model(const chat_options& o, chat_interrupts& interrupts, sayer say);
  ~chat_model(); ///< calls end()
  chat_model(const chat_model&) = delete;
  chat_model& operator=(const chat_model&) = delete;

  /// To be called once, first. It may take as long as a model takes to load.
  [[nodiscard]] model::status find();
  /// Whether Ctrl-C has ended find().
  bool interrupted() const noexcept { return interrupted_; }

  /// Ends the child, and waits until its model is not served any more. Ctrl-C
  /// meanwhile, a second or more later, ends it at once, and is told what may be left.
  /// @returns whether the child has ended in order; also if there is none
  bool end();

  const std::string& name() const noexcept { return name_; }
  /// Tokens; 0: the server has not said.
  std::uint64_t context() const noexcept { return context_; }
  std::string url() const { return settings_.base.text(); }
  runtime::http_client client() const {
    return runtime::http_client(settings_);
  }
  /// What an answer that is no 200 means, as a line for the user.
  /// @param words  the user can type /words
  std::string refusal(const runtime::http_reply& reply, bool words) const;

private:
  struct listed {
    std::string name;
    std::uint64_t context = 0;
  };
  model::status read_key();
  model::status find_at_node();
  model::status use_url(const std::string& url);
  model::result<std::vector<listed>> list() const;
  model::status choose(const std::vector<listed>& from);
  /// @param alone  no node runs here
  model::status serve(bool alone);
  model::status read_served_line(const std::string& line, bool& ready);
  model::status wait_until_served();
  /// What a child that was ended at once may have left.
  std::string left_text() const;

  const chat_options& o_;
  chat_interrupts& interrupts_;
  sayer say_;
  runtime::http_client::settings settings_;
  std::string name_;
  std::uint64_t context_ = 0;
  bool interrupted_ = false;
  bool alone_ = false;   ///< the child is the only peer
  bool is_long_ = false; ///< the child has not been ready for a while
  runtime::child_process child_;
  runtime::posix::descriptor said_; ///< of the child
  std::string said_last_;           ///< its last line before it was ready
};

} // namespace shoal::apps
